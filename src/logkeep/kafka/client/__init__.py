"""A Kafka client over sockets: settings, connections, metadata, fetch and produce. Knows nothing of backups."""
