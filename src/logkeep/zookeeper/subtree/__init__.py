"""A subtree of a backup into an ensemble that runs: planned as changes, carried out in multis, undone again."""
