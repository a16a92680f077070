"""Repair of damaged archived logs and snapshots: find donors, plan, write new objects, verify."""
