"""Restore a backup into the directories of stopped servers: plan, stage, swap, continue, roll back."""
