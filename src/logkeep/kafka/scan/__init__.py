"""Reads the visible records of an archived Kafka backup as Arrow: lazily, and only the batches that are needed."""
