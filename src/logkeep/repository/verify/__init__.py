"""Verification of backups: the checks of each level, and the run that stores the result."""
