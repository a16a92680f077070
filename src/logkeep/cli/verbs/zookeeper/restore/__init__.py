"""`logkeep zookeeper restore` with its survey and plan, and `restore-subtree`."""
