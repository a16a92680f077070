"""ZooKeeper: exact backup and restore of ensembles, proven by the digests that the servers themselves wrote."""
