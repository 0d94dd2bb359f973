"""Files behind a URL, and what a run root holds."""
