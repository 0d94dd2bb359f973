"""Labels join trajectories: per-frame scores, CSL among them. Higher is more suspicious."""
