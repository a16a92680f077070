"""Consistent backups of applications that consume, process and produce on Kafka: headers, a ready loop, the cut."""

from logkeep.application.kafka.headers import Stamps, checkpoint_in, offset_metadata

__all__ = ["Stamps", "checkpoint_in", "offset_metadata"]
