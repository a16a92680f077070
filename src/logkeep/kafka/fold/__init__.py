"""Folds of compacted logs: the archive keeps the latest record of each key at every kept cut, and no more.

A *barrier* is the cut of a backup that is kept: a restore of it must find the same latest records after the fold. The
task of a log computes them before and after, and `run` commits the fold only if both are equal.
"""
