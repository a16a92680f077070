"""Putting a backup back: into a running cluster, or as files of a broker that is stopped."""
