"""A partition's log in files: segments in Kafka's log format, in a directory that its leader locks."""
