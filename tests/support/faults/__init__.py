"""Faults on purpose, between the code under test and a real store."""
