"""Comparison of restored partitions with the archive."""
