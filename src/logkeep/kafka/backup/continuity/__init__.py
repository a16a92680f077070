"""Whether the logs of a cluster continue what is archived of them, and which of them have another past."""
