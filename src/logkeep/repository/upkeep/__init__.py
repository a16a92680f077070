"""Upkeep of a repository: retention, prune, garbage collection, merging of segments, repair."""
