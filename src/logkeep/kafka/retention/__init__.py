"""Retention of archived logs, tied to what their topics guarantee: `prune --source-retention`."""
