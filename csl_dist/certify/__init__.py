"""How good a dataset is: a random sample of its segments for review, and what follows from it."""
