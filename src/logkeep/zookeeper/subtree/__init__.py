"""Restore a subtree of a backup into a running ensemble: plan, journal, batches of changes, check, undo."""
