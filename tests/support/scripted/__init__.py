"""A small scripted source with every step of a real backup: plan, copy in tasks, receipts, parts, manifest, commit.

Its logs hold predictable bytes, so a test can say at any time what a backup must contain.
"""
