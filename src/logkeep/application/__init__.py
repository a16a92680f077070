"""Applications that are backed up at a consistent cut: a runtime of their own, and participants on Kafka."""
