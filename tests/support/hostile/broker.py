"""A broker of an attacker: it answers every request in the right form, with a hostile string in every text.

`with HostileBroker() as broker:` serves at `broker.address` until the block ends. There is one topic with one
partition, one group, one of everything, all with the same hostile name, so that answers fit each other. With `topic`
the topic has that name, which brings a client further. With `refusing` each answer has an error code and a hostile
message. With `permissive` everyone may change everything. With `garbled` no text is UTF-8. `lies` makes the answers to
one API unfit for the request: about another name, empty, or with absurd numbers.
"""

import contextlib
import enum
import socket
import struct
import threading
from collections.abc import Iterable
from typing import Any, Self
from uuid import UUID

from logkeep.kafka.client.protocol import Shape, shape
from tests.support.hostile.corpus import TEXT

_APIS = (
    *("ApiVersions", "Metadata", "ListOffsets", "Fetch", "Produce", "FindCoordinator", "ListGroups", "DescribeGroups"),
    *("OffsetFetch", "OffsetCommit", "OffsetForLeaderEpoch", "DescribeConfigs", "DescribeAcls", "DescribeClientQuotas"),
    *(
        "DescribeCluster",
        "CreateTopics",
        "DeleteTopics",
        "IncrementalAlterConfigs",
        "InitProducerId",
        "CreatePartitions",
    ),
    *(
        "DescribeProducers",
        "DescribeTransactions",
        "ListTransactions",
        "DescribeUserScramCredentials",
        "DescribeLogDirs",
    ),
    *("ConsumerGroupDescribe", "ShareGroupDescribe", "DescribeShareGroupOffsets", "DeleteRecords", "DescribeQuorum"),
)
_FOR_CHANGES = (
    *("Heartbeat", "AddPartitionsToTxn", "EndTxn", "OffsetDelete", "DeleteGroups", "CreateAcls", "AlterClientQuotas"),
    *("AlterShareGroupOffsets", "DeleteShareGroupOffsets"),
)
_INVALID_REQUEST = 42
_ALL_OPERATIONS = range(3, 14)
_NUMBERS = {"node_id": 1, "leader_id": 1, "controller_id": 1, "leader_epoch": 0, "broker_id": 1, "coordinator_id": 1}
_LISTS: dict[str, list[Any]] = {
    **{name: [1] for name in ("replica_nodes", "isr_nodes", "replicas", "isr")},
    **{name: [] for name in ("offline_replicas", "aborted_transactions", "node_endpoints", "eligible_leader_replicas")},
}


class Lie(enum.Enum):
    OTHER_NAME = "other name"
    EMPTY = "empty"
    NEGATIVE = "negative"
    HUGE = "huge"


_LETTERS, _NO_LETTERS = b"evil", b"\xff\xfe\xed\xa0"
"""A part of the hostile text, and as many bytes that no text has."""
_ABSURD = {Lie.NEGATIVE: -7, Lie.HUGE: 100}
"""Numbers that fit into every integer type of the protocol."""


class HostileBroker:
    def __init__(
        self,
        *,
        topic: str = TEXT,
        refusing: bool = False,
        permissive: bool = False,
        garbled: bool = False,
        lies: dict[str, Lie] | None = None,
    ) -> None:
        self._topic, self._refusing, self._permissive, self._garbled = topic, refusing, permissive, garbled
        self.lies = lies or {}
        """By API. It may be changed while the broker serves."""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._port: int = self._listener.getsockname()[1]
        self._shapes = {found.key: found for found in _known((*_APIS, *_FOR_CHANGES) if permissive else _APIS)}
        self._open: list[socket.socket] = []
        self._mistakes: list[Exception] = []
        self._thread = threading.Thread(target=self._accept)
        self.asked: set[str] = set()
        """The requests that were answered."""

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        for each in (self._listener, *self._open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        self._thread.join()
        for mistake in self._mistakes:
            raise mistake

    def _accept(self) -> None:
        served = []
        with contextlib.suppress(OSError):
            while True:
                made, _ = self._listener.accept()
                self._open.append(made)
                served.append(threading.Thread(target=self._serve, args=(made,)))
                served[-1].start()
        for each in served:
            each.join()

    def _serve(self, made: socket.socket) -> None:
        with contextlib.suppress(OSError, struct.error), made.makefile("rb") as requests:
            while True:
                (size,) = struct.unpack(">i", requests.read(4))
                key, version, correlation = struct.unpack_from(">hhi", requests.read(size))
                found = self._shapes.get(key)
                if found is None:
                    return made.close()
                self.asked.add(found.api)
                try:
                    reply = self._reply(found, version, correlation)
                except Exception as error:  # noqa: BLE001 - a mistake of the test; `__exit__` raises it
                    self._mistakes.append(error)
                    return made.close()
                made.sendall(reply)

    def _reply(self, found: Shape, version: int, correlation: int) -> bytes:
        answer = self._filled(found.response, version, found.api)
        answer.API_VERSION = version
        answer.with_header(correlation_id=correlation)
        reply = bytes(answer.encode(framed=True, header=True))
        understood = not self._garbled or found.api == "ApiVersions"  # without that answer no client goes on
        return reply if understood else reply.replace(_LETTERS, _NO_LETTERS)

    def _filled(self, kind: Any, version: int, api: str) -> Any:
        fields = {name: f for name, f in kind.fields.items() if f.for_version_q(version)}
        return kind(**{name: self._value(name, field, version, api) for name, field in fields.items()})

    def _value(self, name: str, field: Any, version: int, api: str) -> Any:
        lie = self.lies.get(api)
        honest = self._honest(name, field, version, api)
        if lie is Lie.EMPTY and field.is_array():
            return []
        if lie is Lie.OTHER_NAME and isinstance(honest, str | UUID) and name != "host":
            return UUID(int=8) if isinstance(honest, UUID) else f"other-{honest}"
        if lie in _ABSURD and type(honest) is int and not name.endswith(("error_code", "port", "_time_ms")):
            return _ABSURD[lie]
        return honest

    def _honest(self, name: str, field: Any, version: int, api: str) -> Any:  # noqa: PLR0911 - one for each type
        if name == "api_keys" and api == "ApiVersions":
            return [self._api_range(field.data_class, each) for each in self._shapes.values()]
        if name in _LISTS and field.is_array():
            return _LISTS[name]
        if field.is_struct_array():
            return [self._filled(field.data_class, version, api)]
        if field.is_struct():
            return self._filled(field.data_class, version, api)
        if field.is_array():
            return [_plain(field.type_str.removeprefix("[]"))]
        if name.endswith("authorized_operations"):
            allowed = set(_ALL_OPERATIONS) if self._permissive else set[int]()
            return 0 if api.endswith("GroupDescribe") else allowed  # kafka-python has the bits as a set
        if name == "host" and api != "DescribeAcls":
            return "127.0.0.1"
        if name == "port":
            return self._port
        if name == "error_code" and self._refusing and api not in {"ApiVersions", "Metadata"}:
            return _INVALID_REQUEST
        if field._entity_type == "topicName" or name == "resource_name":
            return self._topic
        return _NUMBERS.get(name, _plain(field.type_str))

    @staticmethod
    def _api_range(kind: Any, known: Shape) -> Any:
        return kind(api_key=known.key, min_version=known.lowest, max_version=known.highest)


def _known(apis: Iterable[str]) -> list[Shape]:
    found = []
    for api in apis:
        with contextlib.suppress(Exception):  # an API that this release does not use
            found.append(shape(api))
    return found


def _plain(kind: str) -> Any:
    values: dict[str, Any] = {"string": TEXT, "bool": False, "uuid": UUID(int=7), "bytes": b"", "records": b""}
    return values.get(kind, 0.0 if kind == "float64" else 0)
