"""A backup as segment files of a broker that is stopped: every offset, hole, marker and producer state as it was."""
