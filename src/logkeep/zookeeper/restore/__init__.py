"""From a backup to directories that a server starts from: planned, staged beside the old ones, swapped, undone."""
