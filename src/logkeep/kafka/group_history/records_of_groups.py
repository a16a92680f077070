"""Turns decoded records of `__consumer_offsets` and `__share_group_state` into offsets of groups. Pure."""

from typing import Any, Final
from uuid import UUID

import numpy as np
import numpy.typing as npt

from logkeep.formats.kafka import record_kernels as k
from logkeep.formats.kafka.internal_topics.coordinator_records import (
    GROUP_OFFSETS,
    OFFSET_TYPES,
    SHARE_STATE,
    decode_record,
)
from logkeep.formats.kafka.records import Flags, RecordColumns
from logkeep.kafka.group_history.commit_endings import PENDING
from logkeep.kafka.group_history.values import ArchivedCommit, ArchivedPosition

SHARE_TOPICS: Final = 15
"""Names the topics of a share group."""
POSITION: Final = 1
"""Both types of an offset, and in the other topic snapshot and update, are one key."""
_UPDATE_START_AT = 10
_NO_TOPIC = "0" * 32


def position_types(topic: str, types: npt.NDArray[np.int16]) -> Flags:
    """Records with the offset of a group."""
    return np.isin(types, (0, 1) if topic == SHARE_STATE else OFFSET_TYPES)


def changes_position(topic: str, records: RecordColumns, types: npt.NDArray[np.int16]) -> Flags:
    """Which records change a position. An update of a share group that leaves its start as it was has the start
    offset -1."""
    found = position_types(topic, types)
    if topic == SHARE_STATE:
        at, sizes = records.spans[:, k.VALUE_AT].astype(np.int64), records.spans[:, k.VALUE_SIZE]
        updates = np.flatnonzero(found & (types == 1) & (sizes >= _UPDATE_START_AT + 8))
        start = records.data[at[updates, None] + np.arange(_UPDATE_START_AT, _UPDATE_START_AT + 8)]
        found[updates] = (start != 255).any(axis=1) if len(updates) else True
    return found


def archived_position(topic: str, key: bytes, value: bytes, offset: int, type_number: int) -> ArchivedPosition | None:
    """A record as a position; None for a value that this release does not know, and for a share group that has no start
    yet."""
    found = decode_record(topic, type_number.to_bytes(2, "big") + key, value)
    if found.value is None:
        return None
    fields = _fields(topic, found.key, found.value)
    return None if fields["offset"] < 0 else ArchivedPosition(**fields, record_offset=offset)


def archived_commit(
    topic: str, key: bytes, value: bytes, offset: int, time_ms: int, *, transactional: bool
) -> ArchivedCommit | None:
    """A record as a commit whose ending is not known yet; None for a key that cannot be read."""
    found = decode_record(topic, key, value)
    if not found.key:
        return None
    unread = {"offset": None, "leaderEpoch": -1, "metadata": "", "commitTimestamp": -1, "startOffset": None}
    fields = _fields(topic, found.key, found.value if found.value is not None else unread)
    return ArchivedCommit(
        **fields,
        written_ms=time_ms,
        record_offset=offset,
        transactional=transactional,
        effective_ms=None,
        ending=PENDING,
        ended_ms=None,
        unknown=found.unknown,
    )


def _fields(topic: str, key: dict[str, Any], value: dict[str, Any]) -> dict[str, Any]:
    share = topic == SHARE_STATE
    topic_id = UUID((key if share else value).get("topicId", _NO_TOPIC)).hex
    return {
        "group": key["group"],
        "topic": "" if share else key["topic"],
        "partition": key["partition"],
        "topic_id": "" if topic_id == _NO_TOPIC else topic_id,
        "offset": value["startOffset"] if share else value["offset"],
        "leader_epoch": -1 if share else value.get("leaderEpoch", -1),
        "metadata": value.get("metadata", ""),
        "committed_ms": value.get("writeTimestamp", -1) if share else value["commitTimestamp"],
        "share": share,
    }


def topics_of_share_group(key: bytes, value: bytes) -> dict[str, str]:
    """The names of the topics of a share group, by their ids in hexadecimal."""
    found = decode_record(GROUP_OFFSETS, SHARE_TOPICS.to_bytes(2, "big") + key, value).value or {}
    lists = (found.get(name) or [] for name in ("initializingTopics", "initializedTopics", "deletingTopics"))
    return {UUID(each["topicId"]).hex: each["topicName"] for some in lists for each in some}
