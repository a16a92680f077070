"""Zeebe's bytes, made by hand."""
