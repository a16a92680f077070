"""Bytes under names. Knows nothing of backups."""
