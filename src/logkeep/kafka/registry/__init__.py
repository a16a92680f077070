"""Schema registries: what a backup archives of one, and how it is restored."""
