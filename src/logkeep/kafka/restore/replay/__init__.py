"""The task that writes archived logs to partitions, and resumes after failures."""
