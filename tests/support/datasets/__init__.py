"""Datasets made by hand, from the published tables of each format."""
