"""Backups of Zeebe in a repository: imported without what Zeebe stores twice, exported for Zeebe to restore."""
