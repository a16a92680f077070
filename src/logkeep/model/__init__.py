"""Frozen values without I/O: ids, ranges, logs, findings, work, secrets."""
