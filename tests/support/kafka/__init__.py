"""Batches made by hand, and the smallest possible client of a real broker."""
