"""The engine: spreads units of work over processes. The only door to pyspark; knows nothing of backups."""
