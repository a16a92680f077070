"""Copies ranges of logs into the archive: units for an engine, the task, its fetches, what is known of a range."""
