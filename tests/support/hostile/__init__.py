"""Stored documents, servers and directories of an attacker: every text in them tries to control the terminal."""
