"""Verbs about datasets: records of topics in formats that other tools read."""
