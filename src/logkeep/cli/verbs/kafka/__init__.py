"""The verbs of `logkeep kafka`."""
