"""Verbs about datasets and archives of other tools: records of topics in other formats."""
