"""Hypothesis settings for this suite: an example may take as long as a busy machine needs."""

from hypothesis import settings

untimed = settings(deadline=None)
many = settings(deadline=None, max_examples=400)
