"""A backup of one member as a directory that is complete alone: it can be copied, listed and read without a repository."""
