"""All records of `__consumer_offsets`, `__share_group_state` and `__transaction_state`, as Kafka 4.3 writes them.

A key begins with an int16 type, a value with an int16 version; a null value erases the key. What this release does not
know, a type, a version, or bytes that do not fit their shape, is kept as it is, with the reason: it is never an error.
"""

from dataclasses import dataclass
from typing import Any, Final

from logkeep.errors import Damaged
from logkeep.formats.kafka.fields import FieldReader
from logkeep.formats.kafka.internal_topics.record_shapes import Array, FieldStruct, RecordField, ValueShape, read_key

GROUP_OFFSETS: Final = "__consumer_offsets"
SHARE_STATE: Final = "__share_group_state"
TRANSACTION_STATE: Final = "__transaction_state"
DECODED_TOPICS: Final = (GROUP_OFFSETS, SHARE_STATE, TRANSACTION_STATE)
OFFSET_TYPES: Final = (0, 1)
"""Types of a group's offset in one partition, in `__consumer_offsets`."""


@dataclass(frozen=True)
class RecordType:
    name: str
    key: tuple[RecordField, ...]
    value: ValueShape


@dataclass(frozen=True)
class CoordinatorRecord:
    """A record of one of the topics. `key` and `value` are empty where `unknown` says why they could not be read."""

    type: int
    """-1 if the key is shorter than a type."""
    name: str
    version: int | None
    """Null if there is no value."""
    key: dict[str, Any]
    value: dict[str, Any] | None
    unknown: str = ""


def _flat(*fields: RecordField) -> ValueShape:
    """Version 0, flexible."""
    return ValueShape(range(1), 0, fields)


_GROUP = (RecordField("group", "str"),)
_MEMBER = (*_GROUP, RecordField("member", "str"))
_POSITION = (*_GROUP, RecordField("topic", "str"), RecordField("partition", "i32"))
_PARTITIONS = RecordField("partitions", Array("i32"))
_TOPIC_ID = RecordField("topicId", "uuid")
_TOPIC_NAME = RecordField("topicName", "str")
_ASSIGNED = Array(FieldStruct((_TOPIC_ID, _PARTITIONS)))
_ASSIGNED_EPOCHS = Array(FieldStruct((_TOPIC_ID, _PARTITIONS, RecordField("assignmentEpochs", Array("i32"), tag=0))))
_INITIALIZED = Array(FieldStruct((_TOPIC_ID, _TOPIC_NAME, _PARTITIONS)))
_TASKS = Array(FieldStruct((RecordField("subtopologyId", "str"), _PARTITIONS)))
_TASK_EPOCHS = Array(
    FieldStruct(
        (RecordField("subtopologyId", "str"), _PARTITIONS, RecordField("assignmentEpochs", Array("i32"), tag=0))
    )
)
_PAIRS = Array(FieldStruct((RecordField("key", "str"), RecordField("value", "str"))))
_CLIENT = (RecordField("clientId", "str"), RecordField("clientHost", "str"))
_EPOCHS = (RecordField("memberEpoch", "i32"), RecordField("previousMemberEpoch", "i32"), RecordField("state", "i8"))
_HASH = RecordField("metadataHash", "i64")
_TARGET_EPOCH = _flat(RecordField("assignmentEpoch", "i32"), RecordField("assignmentTimestamp", "i64", tag=0))
_TARGET = _flat(RecordField("topicPartitions", _ASSIGNED))
_TOPIC_INFO = Array(
    FieldStruct(
        (
            RecordField("name", "str"),
            RecordField("partitions", "i32"),
            RecordField("replicationFactor", "i16"),
            RecordField("topicConfigs", _PAIRS),
        )
    )
)

_OFFSET = ValueShape(
    range(5), 4,
    (
        RecordField("offset", "i64"),
        RecordField("leaderEpoch", "i32", since=3),
        RecordField("metadata", "str"),
        RecordField("commitTimestamp", "i64"),
        RecordField("expireTimestamp", "i64", since=1, last=1),
        RecordField("topicId", "uuid", since=4, tag=0),
    ),
)  # fmt: skip
_CLASSIC_MEMBER = FieldStruct(
    (
        RecordField("memberId", "str"),
        RecordField("groupInstanceId", "str?", since=3),
        *_CLIENT,
        RecordField("rebalanceTimeout", "i32", since=1),
        RecordField("sessionTimeout", "i32"),
        RecordField("subscription", "bytes"),
        RecordField("assignment", "bytes"),
    )
)
_CLASSIC = ValueShape(
    range(5), 4,
    (
        RecordField("protocolType", "str"),
        RecordField("generation", "i32"),
        RecordField("protocol", "str?"),
        RecordField("leader", "str?"),
        RecordField("currentStateTimestamp", "i64", since=2),
        RecordField("members", Array(_CLASSIC_MEMBER)),
    ),
)  # fmt: skip
_PROTOCOLS = Array(FieldStruct((RecordField("name", "str"), RecordField("metadata", "bytes"))))
_CLASSIC_PROTOCOL = FieldStruct(
    (RecordField("sessionTimeoutMs", "i32"), RecordField("supportedProtocols", _PROTOCOLS)), nullable=True
)
_CONSUMER_MEMBER = _flat(
    RecordField("instanceId", "str?"),
    RecordField("rackId", "str?"),
    *_CLIENT,
    RecordField("subscribedTopicNames", Array("str")),
    RecordField("subscribedTopicRegex", "str?"),
    RecordField("rebalanceTimeoutMs", "i32"),
    RecordField("serverAssignor", "str?"),
    RecordField("classicMemberMetadata", _CLASSIC_PROTOCOL, tag=0),
)
_PARTITION_RACKS = Array(FieldStruct((RecordField("partition", "i32"), RecordField("racks", Array("str")))))
_PARTITION_METADATA = _flat(
    RecordField(
        "topics",
        Array(FieldStruct((_TOPIC_ID, _TOPIC_NAME, RecordField("numPartitions", "i32"),
                      RecordField("partitionMetadata", _PARTITION_RACKS)))),
    )
)  # fmt: skip
_STREAMS_MEMBER = _flat(
    RecordField("instanceId", "str?"),
    RecordField("rackId", "str?"),
    *_CLIENT,
    RecordField("rebalanceTimeoutMs", "i32"),
    RecordField("topologyEpoch", "i32"),
    RecordField("processId", "str"),
    RecordField("userEndpoint", FieldStruct((RecordField("host", "str"), RecordField("port", "u16")), nullable=True)),
    RecordField("clientTags", _PAIRS),
)
_TASK_KINDS = ("activeTasks", "standbyTasks", "warmupTasks")
_STREAMS_CURRENT = _flat(
    *_EPOCHS,
    *(RecordField(f"{kind}{end}", _TASK_EPOCHS) for end in ("", "PendingRevocation") for kind in _TASK_KINDS),
)
_COPARTITION = Array(
    FieldStruct(
        tuple(
            RecordField(name, Array("i16")) for name in ("sourceTopics", "sourceTopicRegex", "repartitionSourceTopics")
        )
    )
)
_TOPOLOGY = _flat(
    RecordField("epoch", "i32"),
    RecordField(
        "subtopologies",
        Array(
            FieldStruct(
                (
                    RecordField("subtopologyId", "str"),
                    RecordField("sourceTopics", Array("str")),
                    RecordField("sourceTopicRegex", Array("str")),
                    RecordField("stateChangelogTopics", _TOPIC_INFO),
                    RecordField("repartitionSinkTopics", Array("str")),
                    RecordField("repartitionSourceTopics", _TOPIC_INFO),
                    RecordField("copartitionGroups", _COPARTITION),
                )
            )
        ),
    ),
)
_OFFSET_TYPES: Final[dict[int, RecordType]] = {
    0: RecordType("offset", _POSITION, _OFFSET),
    1: RecordType("offset", _POSITION, _OFFSET),
    2: RecordType("classic-group", _GROUP, _CLASSIC),
    3: RecordType(
        "consumer-group", _GROUP, _flat(RecordField("epoch", "i32"), RecordField("metadataHash", "i64", tag=0))
    ),
    4: RecordType("consumer-partition-metadata", _GROUP, _PARTITION_METADATA),
    5: RecordType("consumer-member", _MEMBER, _CONSUMER_MEMBER),
    6: RecordType("consumer-target-epoch", _GROUP, _TARGET_EPOCH),
    7: RecordType("consumer-target-member", _MEMBER, _TARGET),
    8: RecordType(
        "consumer-current-member",
        _MEMBER,
        _flat(
            *_EPOCHS,
            RecordField("assignedPartitions", _ASSIGNED_EPOCHS),
            RecordField("partitionsPendingRevocation", _ASSIGNED_EPOCHS),
        ),
    ),
    10: RecordType(
        "share-member",
        _MEMBER,
        _flat(RecordField("rackId", "str?"), *_CLIENT, RecordField("subscribedTopicNames", Array("str"))),
    ),
    11: RecordType("share-group", _GROUP, _flat(RecordField("epoch", "i32"), _HASH)),
    12: RecordType("share-target-epoch", _GROUP, _TARGET_EPOCH),
    13: RecordType("share-target-member", _MEMBER, _TARGET),
    14: RecordType("share-current-member", _MEMBER, _flat(*_EPOCHS, RecordField("assignedPartitions", _ASSIGNED))),
    15: RecordType(
        "share-partition-metadata",
        _GROUP,
        _flat(
            RecordField("initializingTopics", _INITIALIZED),
            RecordField("initializedTopics", _INITIALIZED),
            RecordField("deletingTopics", Array(FieldStruct((_TOPIC_ID, _TOPIC_NAME)))),
        ),
    ),
    16: RecordType(
        "consumer-regex",
        (*_GROUP, RecordField("regularExpression", "str")),
        _flat(RecordField("topics", Array("str")), RecordField("version", "i64"), RecordField("timestamp", "i64")),
    ),
    17: RecordType(
        "streams-group",
        _GROUP,
        _flat(
            RecordField("epoch", "i32"),
            _HASH,
            RecordField("validatedTopologyEpoch", "i32", tag=0),
            RecordField("lastAssignmentConfigs", _PAIRS, tag=1),
        ),
    ),
    19: RecordType("streams-member", _MEMBER, _STREAMS_MEMBER),
    20: RecordType("streams-target-epoch", _GROUP, _TARGET_EPOCH),
    21: RecordType("streams-target-member", _MEMBER, _flat(*(RecordField(kind, _TASKS) for kind in _TASK_KINDS))),
    22: RecordType("streams-current-member", _MEMBER, _STREAMS_CURRENT),
    23: RecordType("streams-topology", _GROUP, _TOPOLOGY),
}
_SHARE_KEY = (*_GROUP, _TOPIC_ID, RecordField("partition", "i32"))
_STATE_BATCHES = RecordField(
    "stateBatches",
    Array(
        FieldStruct(
            (
                RecordField("firstOffset", "i64"),
                RecordField("lastOffset", "i64"),
                RecordField("deliveryState", "i8"),
                RecordField("deliveryCount", "i16"),
            )
        )
    ),
)
_COMPLETE_COUNT = RecordField("deliveryCompleteCount", "i32", tag=0)
_SHARE_TYPES: Final[dict[int, RecordType]] = {
    0: RecordType(
        "share-snapshot",
        _SHARE_KEY,
        _flat(
            RecordField("snapshotEpoch", "i32"),
            RecordField("stateEpoch", "i32"),
            RecordField("leaderEpoch", "i32"),
            RecordField("startOffset", "i64"),
            RecordField("createTimestamp", "i64"),
            RecordField("writeTimestamp", "i64"),
            _STATE_BATCHES,
            _COMPLETE_COUNT,
        ),
    ),
    1: RecordType(
        "share-update",
        _SHARE_KEY,
        _flat(
            RecordField("snapshotEpoch", "i32"),
            RecordField("leaderEpoch", "i32"),
            RecordField("startOffset", "i64"),
            _STATE_BATCHES,
            _COMPLETE_COUNT,
        ),
    ),
}
_TRANSACTION = ValueShape(
    range(2), 1,
    (
        RecordField("producerId", "i64"),
        RecordField("producerEpoch", "i16"),
        RecordField("transactionTimeoutMs", "i32"),
        RecordField("transactionStatus", "i8"),
        RecordField(
            "transactionPartitions",
            Array(FieldStruct((RecordField("topic", "str"), RecordField("partitionIds", Array("i32"))))),
        ),
        RecordField("transactionLastUpdateTimestampMs", "i64"),
        RecordField("transactionStartTimestampMs", "i64"),
        RecordField("previousProducerId", "i64", since=1, tag=0),
        RecordField("nextProducerId", "i64", since=1, tag=1),
        RecordField("clientTransactionVersion", "i16", since=1, tag=2),
        RecordField("nextProducerEpoch", "i16", since=1, tag=3),
    ),
)  # fmt: skip
RECORD_TYPES: Final[dict[str, dict[int, RecordType]]] = {
    GROUP_OFFSETS: _OFFSET_TYPES,
    SHARE_STATE: _SHARE_TYPES,
    TRANSACTION_STATE: {0: RecordType("transaction", (RecordField("transactionalId", "str"),), _TRANSACTION)},
}


def decode_record(topic: str, key: bytes | None, value: bytes | None) -> CoordinatorRecord:
    """Any record of `DECODED_TOPICS`. Never raises."""
    version = int.from_bytes(value[:2], "big", signed=True) if value is not None and len(value) >= 2 else None
    if key is None or len(key) < 2:
        return CoordinatorRecord(-1, "unknown", version, {}, None, "a key without a type")
    number = FieldReader(key).int16()
    known = RECORD_TYPES[topic].get(number)
    if known is None:
        return CoordinatorRecord(number, "unknown", version, {}, None, f"type {number}")
    fields, found, unknown = dict[str, Any](), None, ""
    try:
        fields = read_key(key, known.key)
        if value is not None:
            found = known.value.read(value)[1]
    except Damaged as error:
        unknown = f"type {number}: {error.what}"
    return CoordinatorRecord(number, known.name, version, fields, found, unknown)
