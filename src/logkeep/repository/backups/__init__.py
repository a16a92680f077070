"""Backups of one source: from the request to the manifest, their states, holds and verifications."""
