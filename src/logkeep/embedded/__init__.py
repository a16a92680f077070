"""Real Kafka and ZooKeeper servers for the demo, drills and tests; they stop with the process that started them."""
