"""Kafka clusters: what is asked of brokers, what is archived of their logs, and what is decided on the way."""
