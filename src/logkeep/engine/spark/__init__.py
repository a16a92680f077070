"""The engine on Apache Spark: session, workers, progress, errors, queries in SQL."""
