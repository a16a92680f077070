"""Byte formats: Kafka logs, ZooKeeper files, run maps, comparisons of logs, tables. No I/O."""
