"""Where a partition keeps its state: the protocol of a state backend, SQLite, and a dictionary."""
