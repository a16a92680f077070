"""Facts that a restore collects before it decides: the backup, its logs, the target cluster and the user's rights."""
