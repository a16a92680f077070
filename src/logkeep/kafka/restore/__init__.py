"""Restore of a backup to a running Kafka cluster."""
