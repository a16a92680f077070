"""Backups from the disks of brokers that run no more."""
