"""Rules: each reads the statistics and yields findings of one or a few kinds."""
