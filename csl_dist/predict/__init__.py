"""Every checkpoint on every held-out video: trajectories, which hold no labels."""
