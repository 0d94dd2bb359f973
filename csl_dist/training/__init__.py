"""From features to a checkpoint of every epoch."""
