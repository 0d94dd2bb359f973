"""The user's dataset: videos, labels, splits, and errors that are planted in them."""
