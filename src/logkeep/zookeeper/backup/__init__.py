"""Backup of one or several ensemble members: read the server's files, copy in rounds, report, commit to a sink."""
