"""Records as tables for other tools."""
