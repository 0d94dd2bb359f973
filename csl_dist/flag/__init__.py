"""From scores to spans for review, with how far to trust them."""
