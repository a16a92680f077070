"""Consistent backups of applications that consume, process and produce on Kafka: headers, a ready loop, the cut."""

from logkeep.application.kafka.documents import (
    MarkerDocument,
    ParticipantDeclaration,
    ReadPosition,
    TaskCheckpoint,
    checkpoints_topic,
    control_topic,
    key_of,
    last_key_of,
    sealed,
    unsealed,
)
from logkeep.application.kafka.headers import Stamps, checkpoint_in, offset_metadata
from logkeep.checkpoint.records import MessageSource

__all__ = [
    "MarkerDocument",
    "MessageSource",
    "ParticipantDeclaration",
    "ReadPosition",
    "Stamps",
    "TaskCheckpoint",
    "checkpoint_in",
    "checkpoints_topic",
    "control_topic",
    "key_of",
    "last_key_of",
    "offset_metadata",
    "sealed",
    "unsealed",
]
