"""Backup from the disks of brokers that no longer run."""
