"""A backup of one member as a directory that is complete alone: copied, listed and read without a repository."""
