"""Engines: run one task per unit of work, in this process, in threads, or on Spark."""
