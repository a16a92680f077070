"""Comparing logs: order-preserving digests of records, and the first difference."""
