"""Datasets that exist: checked, described, indexed again, and shortened by age."""
