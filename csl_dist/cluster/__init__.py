"""Ray: connecting to it, pools of actors, progress, and runs as jobs."""
