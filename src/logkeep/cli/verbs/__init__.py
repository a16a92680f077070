"""The verbs of `logkeep`: declaration, text and exit code of each."""
