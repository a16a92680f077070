"""Archived records as tables: the columns and options of Spark's own Kafka source, and what describes a backup."""
