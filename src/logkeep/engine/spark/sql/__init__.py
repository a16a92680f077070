"""Queries in SQL: their tables, names that no table has, and files of results."""
