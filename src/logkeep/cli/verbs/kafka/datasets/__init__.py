"""The verbs of `logkeep kafka` for datasets and archives of other tools."""
