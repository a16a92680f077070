"""Bytes of Zeebe's backups: segments of a partition's log, records, snapshots, manifests. No I/O."""
