"""Shapes of the messages that kafka-python does not bring along, in the notation of Kafka's protocol."""
