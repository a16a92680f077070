"""Kafka's log format: batches, records, codecs, and the topics in which a cluster keeps its own state."""
