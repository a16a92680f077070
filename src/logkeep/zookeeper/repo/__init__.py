"""ZooKeeper backups in a repository: stored, read, verified, repaired, merged."""
