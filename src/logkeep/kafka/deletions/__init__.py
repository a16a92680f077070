"""Keys that were deleted at the source without an archived tombstone: the tasks that find them in the archive."""
