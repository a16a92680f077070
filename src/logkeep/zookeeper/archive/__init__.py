"""Backups of ZooKeeper in a repository: incremental, of several members, on any store."""
