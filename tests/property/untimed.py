"""Hypothesis settings for this suite: an example may take as long as a busy machine needs."""

import os

from hypothesis import settings

untimed = settings(deadline=None)
many = settings(deadline=None, max_examples=int(os.environ.get("LOGKEEP_EXAMPLES", "100")))
"""`make soak` tries 400."""
