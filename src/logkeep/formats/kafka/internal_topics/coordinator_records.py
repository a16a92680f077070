"""All records of `__consumer_offsets`, `__share_group_state` and `__transaction_state`, as Kafka 4.3 writes them.

A key begins with an int16 type, a value with an int16 version; a null value erases the key. What this release does not
know, a type, a version, or bytes that do not fit their shape, is kept as it is, with the reason: it is never an error.
"""

from dataclasses import dataclass
from typing import Any, Final

from logkeep.errors import Damaged
from logkeep.formats.kafka.fields import FieldReader
from logkeep.formats.kafka.internal_topics.record_shapes import Array, Field, Shape, Struct, read_key

GROUP_OFFSETS: Final = "__consumer_offsets"
SHARE_STATE: Final = "__share_group_state"
TRANSACTION_STATE: Final = "__transaction_state"
DECODED_TOPICS: Final = (GROUP_OFFSETS, SHARE_STATE, TRANSACTION_STATE)
OFFSET_TYPES: Final = (0, 1)
"""Types of a group's offset in one partition, in `__consumer_offsets`."""


@dataclass(frozen=True)
class RecordType:
    name: str
    key: tuple[Field, ...]
    value: Shape


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


def _flat(*fields: Field) -> Shape:
    """Version 0, flexible."""
    return Shape(range(1), 0, fields)


_GROUP = (Field("group", "str"),)
_MEMBER = (*_GROUP, Field("member", "str"))
_POSITION = (*_GROUP, Field("topic", "str"), Field("partition", "i32"))
_PARTITIONS = Field("partitions", Array("i32"))
_TOPIC_ID = Field("topicId", "uuid")
_TOPIC_NAME = Field("topicName", "str")
_ASSIGNED = Array(Struct((_TOPIC_ID, _PARTITIONS)))
_ASSIGNED_EPOCHS = Array(Struct((_TOPIC_ID, _PARTITIONS, Field("assignmentEpochs", Array("i32"), tag=0))))
_INITIALIZED = Array(Struct((_TOPIC_ID, _TOPIC_NAME, _PARTITIONS)))
_TASKS = Array(Struct((Field("subtopologyId", "str"), _PARTITIONS)))
_TASK_EPOCHS = Array(
    Struct((Field("subtopologyId", "str"), _PARTITIONS, Field("assignmentEpochs", Array("i32"), tag=0)))
)
_PAIRS = Array(Struct((Field("key", "str"), Field("value", "str"))))
_CLIENT = (Field("clientId", "str"), Field("clientHost", "str"))
_EPOCHS = (Field("memberEpoch", "i32"), Field("previousMemberEpoch", "i32"), Field("state", "i8"))
_HASH = Field("metadataHash", "i64")
_TARGET_EPOCH = _flat(Field("assignmentEpoch", "i32"), Field("assignmentTimestamp", "i64", tag=0))
_TARGET = _flat(Field("topicPartitions", _ASSIGNED))
_TOPIC_INFO = Array(
    Struct(
        (
            Field("name", "str"),
            Field("partitions", "i32"),
            Field("replicationFactor", "i16"),
            Field("topicConfigs", _PAIRS),
        )
    )
)

_OFFSET = Shape(
    range(5), 4,
    (
        Field("offset", "i64"),
        Field("leaderEpoch", "i32", since=3),
        Field("metadata", "str"),
        Field("commitTimestamp", "i64"),
        Field("expireTimestamp", "i64", since=1, last=1),
        Field("topicId", "uuid", since=4, tag=0),
    ),
)  # fmt: skip
_CLASSIC_MEMBER = Struct(
    (
        Field("memberId", "str"),
        Field("groupInstanceId", "str?", since=3),
        *_CLIENT,
        Field("rebalanceTimeout", "i32", since=1),
        Field("sessionTimeout", "i32"),
        Field("subscription", "bytes"),
        Field("assignment", "bytes"),
    )
)
_CLASSIC = Shape(
    range(5), 4,
    (
        Field("protocolType", "str"),
        Field("generation", "i32"),
        Field("protocol", "str?"),
        Field("leader", "str?"),
        Field("currentStateTimestamp", "i64", since=2),
        Field("members", Array(_CLASSIC_MEMBER)),
    ),
)  # fmt: skip
_PROTOCOLS = Array(Struct((Field("name", "str"), Field("metadata", "bytes"))))
_CLASSIC_PROTOCOL = Struct((Field("sessionTimeoutMs", "i32"), Field("supportedProtocols", _PROTOCOLS)), nullable=True)
_CONSUMER_MEMBER = _flat(
    Field("instanceId", "str?"),
    Field("rackId", "str?"),
    *_CLIENT,
    Field("subscribedTopicNames", Array("str")),
    Field("subscribedTopicRegex", "str?"),
    Field("rebalanceTimeoutMs", "i32"),
    Field("serverAssignor", "str?"),
    Field("classicMemberMetadata", _CLASSIC_PROTOCOL, tag=0),
)
_PARTITION_RACKS = Array(Struct((Field("partition", "i32"), Field("racks", Array("str")))))
_PARTITION_METADATA = _flat(
    Field(
        "topics",
        Array(Struct((_TOPIC_ID, _TOPIC_NAME, Field("numPartitions", "i32"),
                      Field("partitionMetadata", _PARTITION_RACKS)))),
    )
)  # fmt: skip
_STREAMS_MEMBER = _flat(
    Field("instanceId", "str?"),
    Field("rackId", "str?"),
    *_CLIENT,
    Field("rebalanceTimeoutMs", "i32"),
    Field("topologyEpoch", "i32"),
    Field("processId", "str"),
    Field("userEndpoint", Struct((Field("host", "str"), Field("port", "u16")), nullable=True)),
    Field("clientTags", _PAIRS),
)
_TASK_KINDS = ("activeTasks", "standbyTasks", "warmupTasks")
_STREAMS_CURRENT = _flat(
    *_EPOCHS,
    *(Field(f"{kind}{end}", _TASK_EPOCHS) for end in ("", "PendingRevocation") for kind in _TASK_KINDS),
)
_COPARTITION = Array(
    Struct(tuple(Field(name, Array("i16")) for name in ("sourceTopics", "sourceTopicRegex", "repartitionSourceTopics")))
)
_TOPOLOGY = _flat(
    Field("epoch", "i32"),
    Field(
        "subtopologies",
        Array(
            Struct(
                (
                    Field("subtopologyId", "str"),
                    Field("sourceTopics", Array("str")),
                    Field("sourceTopicRegex", Array("str")),
                    Field("stateChangelogTopics", _TOPIC_INFO),
                    Field("repartitionSinkTopics", Array("str")),
                    Field("repartitionSourceTopics", _TOPIC_INFO),
                    Field("copartitionGroups", _COPARTITION),
                )
            )
        ),
    ),
)
_OFFSET_TYPES: Final[dict[int, RecordType]] = {
    0: RecordType("offset", _POSITION, _OFFSET),
    1: RecordType("offset", _POSITION, _OFFSET),
    2: RecordType("classic-group", _GROUP, _CLASSIC),
    3: RecordType("consumer-group", _GROUP, _flat(Field("epoch", "i32"), Field("metadataHash", "i64", tag=0))),
    4: RecordType("consumer-partition-metadata", _GROUP, _PARTITION_METADATA),
    5: RecordType("consumer-member", _MEMBER, _CONSUMER_MEMBER),
    6: RecordType("consumer-target-epoch", _GROUP, _TARGET_EPOCH),
    7: RecordType("consumer-target-member", _MEMBER, _TARGET),
    8: RecordType(
        "consumer-current-member",
        _MEMBER,
        _flat(
            *_EPOCHS,
            Field("assignedPartitions", _ASSIGNED_EPOCHS),
            Field("partitionsPendingRevocation", _ASSIGNED_EPOCHS),
        ),
    ),
    10: RecordType(
        "share-member",
        _MEMBER,
        _flat(Field("rackId", "str?"), *_CLIENT, Field("subscribedTopicNames", Array("str"))),
    ),
    11: RecordType("share-group", _GROUP, _flat(Field("epoch", "i32"), _HASH)),
    12: RecordType("share-target-epoch", _GROUP, _TARGET_EPOCH),
    13: RecordType("share-target-member", _MEMBER, _TARGET),
    14: RecordType("share-current-member", _MEMBER, _flat(*_EPOCHS, Field("assignedPartitions", _ASSIGNED))),
    15: RecordType(
        "share-partition-metadata",
        _GROUP,
        _flat(
            Field("initializingTopics", _INITIALIZED),
            Field("initializedTopics", _INITIALIZED),
            Field("deletingTopics", Array(Struct((_TOPIC_ID, _TOPIC_NAME)))),
        ),
    ),
    16: RecordType(
        "consumer-regex",
        (*_GROUP, Field("regularExpression", "str")),
        _flat(Field("topics", Array("str")), Field("version", "i64"), Field("timestamp", "i64")),
    ),
    17: RecordType(
        "streams-group",
        _GROUP,
        _flat(
            Field("epoch", "i32"),
            _HASH,
            Field("validatedTopologyEpoch", "i32", tag=0),
            Field("lastAssignmentConfigs", _PAIRS, tag=1),
        ),
    ),
    19: RecordType("streams-member", _MEMBER, _STREAMS_MEMBER),
    20: RecordType("streams-target-epoch", _GROUP, _TARGET_EPOCH),
    21: RecordType("streams-target-member", _MEMBER, _flat(*(Field(kind, _TASKS) for kind in _TASK_KINDS))),
    22: RecordType("streams-current-member", _MEMBER, _STREAMS_CURRENT),
    23: RecordType("streams-topology", _GROUP, _TOPOLOGY),
}
_SHARE_KEY = (*_GROUP, _TOPIC_ID, Field("partition", "i32"))
_STATE_BATCHES = Field(
    "stateBatches",
    Array(
        Struct(
            (
                Field("firstOffset", "i64"),
                Field("lastOffset", "i64"),
                Field("deliveryState", "i8"),
                Field("deliveryCount", "i16"),
            )
        )
    ),
)
_COMPLETE_COUNT = Field("deliveryCompleteCount", "i32", tag=0)
_SHARE_TYPES: Final[dict[int, RecordType]] = {
    0: RecordType(
        "share-snapshot",
        _SHARE_KEY,
        _flat(
            Field("snapshotEpoch", "i32"),
            Field("stateEpoch", "i32"),
            Field("leaderEpoch", "i32"),
            Field("startOffset", "i64"),
            Field("createTimestamp", "i64"),
            Field("writeTimestamp", "i64"),
            _STATE_BATCHES,
            _COMPLETE_COUNT,
        ),
    ),
    1: RecordType(
        "share-update",
        _SHARE_KEY,
        _flat(
            Field("snapshotEpoch", "i32"),
            Field("leaderEpoch", "i32"),
            Field("startOffset", "i64"),
            _STATE_BATCHES,
            _COMPLETE_COUNT,
        ),
    ),
}
_TRANSACTION = Shape(
    range(2), 1,
    (
        Field("producerId", "i64"),
        Field("producerEpoch", "i16"),
        Field("transactionTimeoutMs", "i32"),
        Field("transactionStatus", "i8"),
        Field(
            "transactionPartitions",
            Array(Struct((Field("topic", "str"), Field("partitionIds", Array("i32"))))),
        ),
        Field("transactionLastUpdateTimestampMs", "i64"),
        Field("transactionStartTimestampMs", "i64"),
        Field("previousProducerId", "i64", since=1, tag=0),
        Field("nextProducerId", "i64", since=1, tag=1),
        Field("clientTransactionVersion", "i16", since=1, tag=2),
        Field("nextProducerEpoch", "i16", since=1, tag=3),
    ),
)  # fmt: skip
RECORD_TYPES: Final[dict[str, dict[int, RecordType]]] = {
    GROUP_OFFSETS: _OFFSET_TYPES,
    SHARE_STATE: _SHARE_TYPES,
    TRANSACTION_STATE: {0: RecordType("transaction", (Field("transactionalId", "str"),), _TRANSACTION)},
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
