"""The verbs for applications of partitions: `logkeep app …`."""
