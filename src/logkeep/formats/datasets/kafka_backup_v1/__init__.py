"""The format kafka-backup-v1: how its files are named and encoded, and how they are read."""
