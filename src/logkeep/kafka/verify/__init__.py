"""Verification of Kafka backups at the levels `records` and `source`."""
