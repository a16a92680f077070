"""Backup, restore, salvage and verification of Kafka clusters."""
