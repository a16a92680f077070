"""The verbs of `logkeep zookeeper`."""
