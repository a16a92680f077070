"""The verbs of `logkeep kafka schemas`."""
