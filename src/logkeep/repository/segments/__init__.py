"""Archived segments: written and packed, read with any codec, batch by batch, and what is left of a damaged one."""
