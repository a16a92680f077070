"""What happened to znodes, and when: archived transactions and trees, asked instead of restored."""
