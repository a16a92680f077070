"""A client of one cluster: metadata, one connection per broker, and retries while leaders move.

    with Cluster(settings) as cluster:
        cluster.metadata()                     # everything
        cluster.ask_any("ListGroups", {})      # the first broker that answers
        cluster.ask_leaders(partitions, ask)   # each partition's leader, found again when it moves

Requests are repeated with growing waits while the reason is a temporary one (a leader moved, a broker restarts); then
the error says what is still missing. For one thread at a time.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from logkeep.errors import (
    ClusterError,
    ClusterNotReady,
    ClusterUnreachable,
    ProtocolMismatch,
    TlsFailed,
    TopicMissing,
)
from logkeep.kafka.client.connection import Connection
from logkeep.kafka.client.error_codes import OK, TRY_AGAIN, failure
from logkeep.kafka.client.listener_probe import closed_by_server, find_mismatch
from logkeep.kafka.client.metadata import read_metadata, request_fields
from logkeep.kafka.client.retry import Backoff
from logkeep.kafka.client.security.tls import tls_context
from logkeep.kafka.client.settings import ClientSettings, Endpoint
from logkeep.kafka.client.topology import Broker, ClusterMetadata, TopicPartition
from logkeep.model.plurals import plural

T = TypeVar("T")
Answer = tuple[TopicPartition, int, T]
"""A partition, the error code of its part of the reply, and the value if that is 0."""

_CHUNK = 2000
"""Partitions per request: replies stay small, and a slow broker answers within the timeout."""

_FIRST_ATTEMPTS = 3
"""As long as no broker ever answered, a wrong address is likelier than a restart."""

_RESTART_ATTEMPTS = 60
"""More than three minutes."""

_IDLE_S = 180.0
"""A connection unused for longer is replaced: brokers close idle ones, and firewalls drop them without a sign."""

_SHOWN = 3
_REMEDY = "check which brokers are down, then run again; a topic that stays like this can be left out with --exclude"


class Cluster:
    """Opens connections when they are needed; `close` (or the end of `with`) closes them all."""

    def __init__(
        self,
        settings: ClientSettings,
        *,
        backoff: Backoff | None = None,
        clock: Callable[[], float] = time.monotonic,
        met: bool = False,
    ) -> None:
        """`met`: a broker answered earlier in this run, so the address is right."""
        self.settings = settings
        self.backoff = backoff or Backoff()
        self._clock = clock
        self._context = tls_context(settings) if settings.tls else None
        self._connections: dict[Endpoint, Connection] = {}
        self._used_at: dict[Endpoint, float] = {}
        self._known: ClusterMetadata | None = None
        self._brokers: tuple[Broker, ...] = ()
        self._met = met
        self._probed: set[Endpoint] = set()
        """Servers that closed our connection before any broker answered, and were then probed for their protocol."""
        self._answered = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        for each in self._connections.values():
            each.close()
        self._connections.clear()

    def metadata(self, topics: Sequence[str] | None = None) -> ClusterMetadata:
        """Read the metadata. None = all topics that this user may see; topics with an error are in `unready`.

        For a named topic this waits while its error is temporary; a missing or forbidden topic raises.
        """
        if topics is None:
            self._known = self._read(None)
            return self._known
        found = ClusterMetadata("", (), ())
        for _ in self.backoff.tries():
            found = self._read(topics)
            if not any(each.passing for each in found.unready):
                break
        for each in found.unready:
            raise failure(each.code, subject=each.name, doing="Metadata")
        return found

    def _read(self, topics: Sequence[str] | None) -> ClusterMetadata:
        found = read_metadata(self.ask_any("Metadata", request_fields(topics)))
        self._brokers = found.brokers
        return found

    def known(self) -> ClusterMetadata:
        """The metadata as last read; read now if there is none."""
        return self._known or self.metadata()

    def connection(self, node: int) -> Connection:
        """The connection to one broker, opened if needed. Raises `ClusterUnreachable`, `ClusterNotReady`."""
        return self._open(self._endpoint(node))

    def open_own(self, node: int) -> Connection:
        """A further connection to a broker, which the caller closes: for a stream of raw fetches or produces."""
        return Connection.open(self._endpoint(node), self.settings, context=self._context, clock=self._clock)

    def ask_any(self, api: str, fields: Mapping[str, Any], *, at_most: int | None = None) -> Any:
        """Send a request that every broker can answer, until one does.

        A broker with a wrong certificate or another protocol does not prevent others from answering; retries do not
        help with it.
        """
        return self._any(api, lambda connection: connection.call(api, fields, at_most=at_most))

    def ask_any_all(self, api: str, many: Sequence[Mapping[str, Any]]) -> list[Any]:
        """The same for many requests: one broker answers all of them, some at the same time."""
        return self._any(api, lambda connection: connection.call_all(api, many)) if many else []

    def _any(self, api: str, ask: Callable[[Connection], T]) -> T:
        last: ClusterUnreachable | None = None
        unusable: dict[Endpoint, ClusterError] = {}
        for number in self.backoff.tries():
            for endpoint in self._endpoints():
                if endpoint in unusable:
                    continue
                try:
                    answer = ask(self._open(endpoint))
                except ClusterUnreachable as error:
                    last = error
                    if (other := self._mismatch(endpoint, error)) is not None:
                        unusable[endpoint] = other
                except (TlsFailed, ProtocolMismatch) as error:
                    unusable[endpoint] = error
                else:
                    self._answered = True
                    return answer
            if (number + 1 >= _FIRST_ATTEMPTS and not self._met) or unusable.keys() >= set(self._endpoints()):
                break
        if unusable:
            raise next(iter(unusable.values()))  # the user has to correct this, whichever brokers are down
        raise ClusterUnreachable(
            f"no broker answers {api}; the last attempt: {last.what if last else 'none is known'}",
            subject=", ".join(str(each) for each in self.settings.bootstrap),
        ) from last

    def _mismatch(self, endpoint: Endpoint, error: ClusterUnreachable) -> ProtocolMismatch | None:
        """Before any broker answered: whether the server closed the connection because it uses another protocol."""
        if self._answered or endpoint in self._probed or not closed_by_server(error):
            return None
        self._probed.add(endpoint)
        return find_mismatch(endpoint, self.settings, self._context)

    def ask_each(self, api: str, fields: Mapping[str, Any]) -> list[tuple[int, Any]]:
        """Send the same request to every broker that is up: `(node, reply)`.

        If one fails meanwhile, all are asked again: what it had may have moved to one that had answered already.
        """
        last: ClusterUnreachable | None = None
        for _ in self.backoff.tries():
            brokers = self.metadata(()).brokers
            try:
                return [(each.node, self._open(each.endpoint).call(api, fields)) for each in brokers]
            except ClusterUnreachable as error:
                last = error
        raise last or ClusterUnreachable(f"{api} was never asked")

    def ask_node(self, node: int, api: str, fields: Mapping[str, Any]) -> Any:
        """Send a request to one broker, repeated while the connection breaks."""
        last: ClusterError | None = None
        for _ in self.backoff.tries():
            try:
                return self.connection(node).call(api, fields)
            except (ClusterUnreachable, ClusterNotReady) as error:
                last = error
                self.metadata()
        raise last or ClusterNotReady("was not asked", subject=f"broker {node}")

    def ask_leaders(
        self,
        wanted: Iterable[TopicPartition],
        ask: Callable[[Connection, Sequence[TopicPartition]], Iterable[Answer[T]]],
    ) -> dict[TopicPartition, T]:
        """`ask` each leader for its partitions, some thousand at a time; failed partitions are asked of a new leader.

        Raises `TopicMissing`, `NotAuthorised`, `ClusterNotReady` (with the partitions), or what `ask` raises.
        """
        done: dict[TopicPartition, T] = {}
        left = list(dict.fromkeys(wanted))
        trouble: ClusterError | None = None
        for number in self.backoff.tries():
            if number:
                self.metadata()
            for node, chunk in self._by_leader(left):
                try:
                    answers = list(ask(self.connection(node), chunk)) if node >= 0 else []
                except (ClusterUnreachable, ClusterNotReady) as error:
                    trouble, answers = error, []
                trouble = _temporary_error(answers) or trouble
                done |= {each: value for each, code, value in answers if code == OK}
            left = [each for each in left if each not in done]
            if not left:
                return done
        raise _still_missing(left, trouble)

    def _by_leader(self, wanted: Sequence[TopicPartition]) -> Iterator[tuple[int, list[TopicPartition]]]:
        """`(leader, at most some thousand partitions)`; leader -1 = there is none at the moment."""
        known = self.known()
        if any(known.find(each) is None for each in wanted):
            known = self.metadata()
        groups: defaultdict[int, list[TopicPartition]] = defaultdict(list)
        for each in wanted:
            # A request by name shows whether a topic is missing or forbidden, or has become ready.
            partition = known.find(each) or self.metadata([each.topic]).find(each)
            if partition is None:
                raise TopicMissing("no such partition", subject=str(each))
            groups[partition.leader].append(each)
        for node, members in sorted(groups.items()):
            for at in range(0, len(members), _CHUNK):
                yield node, members[at : at + _CHUNK]

    def _endpoint(self, node: int) -> Endpoint:
        for broker in self._brokers or self.known().brokers:
            if broker.node == node:
                return broker.endpoint
        raise ClusterNotReady("is not among the brokers that are up", subject=f"broker {node}")

    def _endpoints(self) -> Iterator[Endpoint]:
        """Open connections first, then known brokers, then the bootstrap servers."""
        known = [each.endpoint for each in self._brokers]
        yield from dict.fromkeys([*self._connections, *known, *self.settings.bootstrap])

    def _open(self, endpoint: Endpoint) -> Connection:
        found, now = self._connections.get(endpoint), self._clock()
        idle_s = now - self._used_at.get(endpoint, now)
        self._used_at[endpoint] = now
        if found is not None and idle_s < _IDLE_S and not found.needs_replacement(now):
            return found
        if found is not None:
            found.close()
            del self._connections[endpoint]
            # Certificates may have been renewed since the first connection of a long run.
            self._context = tls_context(self.settings) if self.settings.tls else None
        made = Connection.open(endpoint, self.settings, context=self._context, clock=self._clock)
        self._connections[endpoint] = made
        self._met = True
        return made


def long_retry_cluster(settings: ClientSettings) -> Cluster:
    """A cluster for the steps of a restore after its plan: they wait some minutes for a broker that is restarted."""
    return Cluster(settings, backoff=Backoff(attempts=_RESTART_ATTEMPTS), met=True)


def _temporary_error(answers: Sequence[Answer[Any]]) -> ClusterError | None:
    """The first temporary error; a permanent one is raised."""
    passing: ClusterError | None = None
    for each, code, _ in answers:
        if code == OK:
            continue
        found = failure(code, subject=str(each), doing="the leader's answer")
        if code not in TRY_AGAIN:
            raise found
        passing = passing or found
    return passing


def _still_missing(left: Sequence[TopicPartition], trouble: ClusterError | None) -> ClusterError:
    named = ", ".join(str(each) for each in left[:_SHOWN]) + (" …" if len(left) > _SHOWN else "")
    why = str(trouble) if trouble else "no leader"
    kind = type(trouble) if trouble and trouble.retry_helps else ClusterNotReady
    silent = plural(len(left), "partition does", "partitions do")
    return kind(f"{silent} not answer: {why}", subject=named, remedy=_REMEDY)
