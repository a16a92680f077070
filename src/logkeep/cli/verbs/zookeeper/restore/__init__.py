"""To be described in one line."""
