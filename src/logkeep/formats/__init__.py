"""Bytes and what they mean: Kafka's own log format and the index beside an archived log. No I/O."""
