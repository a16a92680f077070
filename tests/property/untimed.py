"""Hypothesis settings for this suite: an example may take as long as a busy machine needs."""

from hypothesis import settings

untimed = many = settings(deadline=None)
"""With as many examples as `tests/conftest.py` says."""
