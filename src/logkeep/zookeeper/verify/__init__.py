"""Verification of a ZooKeeper backup at the levels files, data, replay and boot, and the verdict."""
