"""Restore of a backup as segment files in the log directories of a stopped broker."""
