"""Definitions of messages that kafka-python lacks, in the notation of Kafka's protocol."""
