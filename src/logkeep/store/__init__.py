"""Stores: objects under names, in a directory or a bucket. Knows nothing of backups."""
