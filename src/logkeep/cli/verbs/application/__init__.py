"""The verbs of `logkeep app`: consistent backups of applications, and their restore."""
