"""Load for real ZooKeeper servers, and independent looks at what they hold."""
