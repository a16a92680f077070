"""Records that Kafka writes for itself: committed offsets, the metadata log, SCRAM credentials."""
