"""Kafka clusters over the wire: settings, one blocking connection, cluster metadata, typed admin calls."""
