"""Sizes and times in words."""


def size_words(num_bytes: float) -> str:
    if num_bytes >= 1e9:
        return f"{num_bytes / 1e9:,.1f} GB"
    return f"{max(1, round(num_bytes / 1e6)):,} MB"


def time_words(seconds: float) -> str:
    """Two figures: nobody knows it better."""
    if seconds < 90:
        return f"{max(5, round(seconds / 5) * 5)} s"
    minutes = seconds / 60
    if minutes < 90:
        return f"{minutes:.0f} min"
    hours = minutes / 60
    return f"{hours:.1f} h" if hours < 48 else f"{hours / 24:.1f} days"
