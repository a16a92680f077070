"""Restore an ensemble on several hosts: survey every host, make one plan of all surveys, apply it on every host."""
