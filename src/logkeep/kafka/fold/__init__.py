"""Fold of compacted logs: the archive keeps the latest record of each key at every kept cut, and no more."""
