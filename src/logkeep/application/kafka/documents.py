"""The documents that an application and its coordinator exchange in topics: declarations, markers, checkpoints.

`<application>.control` (compacted, one partition): `lk/participant/<group>` has a declaration, `lk/marker` the newest
marker. `<application>.checkpoints` (compacted): `lk/last/<task>` has the last checkpoint of a task, for its next owner.
`lk/checkpoint/<task>/<id>` has the same for the coordinator; the task's next checkpoint removes it.
"""

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from typing import Annotated, NamedTuple, TypeVar

import msgspec

from logkeep.errors import Damaged

LARGEST = 1 << 20
"""Kafka's own default limit of a record."""

_Id = Annotated[int, msgspec.Meta(ge=1, le=10**18 - 1)]
_Offset = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_Partition = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


class ParticipantDeclaration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="participant"):
    """One consumer group of the application."""

    version: int = 1
    application: str
    group: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    transactional: bool
    together: bool
    """One task reads the same partition of all inputs."""


class MarkerDocument(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="marker"):
    """The order to take a checkpoint."""

    version: int = 1
    application: str
    id: _Id
    nonce: str
    repository: str


class ReadPosition(msgspec.Struct, frozen=True, forbid_unknown_fields=True, order=True):
    """The next record that a task would have read of one input."""

    topic: str
    partition: _Partition
    offset: _Offset


class TaskCheckpoint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="checkpoint"):
    """The checkpoint of one task: everything it produced before is committed, nothing after."""

    version: int = 1
    application: str
    group: str
    id: _Id
    forced: bool
    positions: tuple[ReadPosition, ...]


ControlDocument = ParticipantDeclaration | MarkerDocument | TaskCheckpoint
_DocumentT = TypeVar("_DocumentT", ParticipantDeclaration, MarkerDocument, TaskCheckpoint)
_encoder = msgspec.json.Encoder(order="deterministic")


class _Digest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    sha256: str


def control_topic(application: str) -> str:
    return f"{application}.control"


def checkpoints_topic(application: str) -> str:
    return f"{application}.checkpoints"


def key_of(document: ControlDocument) -> bytes:
    """Compaction keeps the last record of a key."""
    if isinstance(document, ParticipantDeclaration):
        return f"lk/participant/{document.group}".encode()
    if isinstance(document, MarkerDocument):
        return b"lk/marker"
    return f"lk/checkpoint/{_task_name(document)}/{document.id}".encode()


def last_key_of(document: TaskCheckpoint) -> bytes:
    """The same for every checkpoint of a task."""
    return f"lk/last/{_task_name(document)}".encode()


def _task_name(document: TaskCheckpoint) -> str:
    first = min(document.positions)
    return f"{document.group}/{first.topic}/{first.partition}"


class KnownTask(NamedTuple):
    """What the topic of checkpoints has of a task."""

    last: int = 0
    """The id of its last checkpoint; 0 if there is none."""
    removable: frozenset[bytes] = frozenset()
    """Keys of its records for coordinators."""


def known_tasks(
    records: Iterable[tuple[bytes, bytes | None]], group: str
) -> dict[tuple[tuple[str, int], ...], KnownTask]:
    """The tasks of a group by their inputs, from keys and values in order. Pure. Earlier releases removed nothing."""
    live: dict[bytes, TaskCheckpoint] = {}
    for key, value in records:
        live.pop(key, None)
        with suppress(Damaged):  # removed, or another client's record
            document = unsealed(value, TaskCheckpoint, "")
            if document.group == group:
                live[key] = document
    found: dict[tuple[tuple[str, int], ...], KnownTask] = {}
    for key, document in live.items():
        inputs = tuple(sorted((p.topic, p.partition) for p in document.positions))
        own = {key} if key == key_of(document) else set()
        found[inputs] = KnownTask(document.id, found.get(inputs, KnownTask()).removable | own)
    return found


def sealed(document: ControlDocument) -> bytes:
    """One line of JSON, and one line with its SHA-256, as in a repository."""
    line = _encoder.encode(document) + b"\n"
    return line + _encoder.encode(_Digest(hashlib.sha256(line).hexdigest())) + b"\n"


def unsealed(data: bytes | None, kind: type[_DocumentT], where: str) -> _DocumentT:
    """Raises Damaged for anything that is not such a document."""
    if data is None or len(data) > LARGEST:
        raise Damaged("not a document of an application", subject=where)
    line, _, rest = data.partition(b"\n")
    try:
        digest = msgspec.json.decode(rest, type=_Digest)
        document = msgspec.json.decode(line, type=kind)
    except msgspec.MsgspecError as error:
        raise Damaged(f"not a document of an application: {error}", subject=where) from error
    if digest.sha256 != hashlib.sha256(line + b"\n").hexdigest():
        raise Damaged("its SHA-256 does not match", subject=where)
    return document


def tasks_of(
    declarations: Iterable[ParticipantDeclaration], partitions: dict[str, int]
) -> set[tuple[str, tuple[tuple[str, int], ...]]]:
    """All tasks, as group and inputs. Pure. `partitions`: how many each topic has."""
    found: set[tuple[str, tuple[tuple[str, int], ...]]] = set()
    for each in declarations:
        logs = [(topic, p) for topic in each.inputs for p in range(partitions[topic])]
        if each.together:
            numbers = {p for _, p in logs}
            found |= {(each.group, tuple(sorted(log for log in logs if log[1] == p))) for p in numbers}
        else:
            found |= {(each.group, (log,)) for log in logs}
    return found
