"""Takes a backup of a running Zeebe: asks for it, follows it to its end, and judges what Zeebe answers."""
