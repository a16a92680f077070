"""Applications whose log is on Kafka: any number of processes share the partitions out among them."""
