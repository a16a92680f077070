"""Verbs about Zeebe."""
