"""Schemas in archived records: which id a key or value begins with."""
