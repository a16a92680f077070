"""A backup of one member as a self-contained directory (a bundle), readable without a repository."""
