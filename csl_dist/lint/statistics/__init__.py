"""Statistics of labels: order, durations, background, and how likely a score means an error."""
