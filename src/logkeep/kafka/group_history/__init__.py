"""Groups and their offsets at any archived time, from the archived logs of Kafka's own topics."""
