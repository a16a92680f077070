"""Pure decisions of a restore: which logs, which topics, which offsets, which groups, and what is refused."""
