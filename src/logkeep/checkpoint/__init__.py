"""Consistent checkpoints of partitioned stream processors: one cut over all partitions, taken without a pause."""
