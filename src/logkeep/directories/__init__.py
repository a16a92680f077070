"""Directories that are opened once: no link is followed, and root works in a user's directory as that user."""
