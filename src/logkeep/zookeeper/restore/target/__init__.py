"""The servers that a restore goes to: their directories and locks, what these hold, and whether a server runs."""
