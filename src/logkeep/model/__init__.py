"""Frozen values without I/O: ids, ranges, logs, findings, work. Nothing here opens, waits or asks for the time."""
