"""One Kafka log, live at its leader or archived: readers and writers of batches, and their checks."""
