"""Judges cuts and logs by what was sent, received and logged, with vector clocks of its own.

It knows records, their sources and the numbers of sendings, and nothing about checkpoints. A cut says for each
partition how many records are inside. It is consistent if nothing inside depends on a record outside.
"""

from collections.abc import Mapping, Sequence

import msgspec

from logkeep.checkpoint.records import INPUT, Kind, MessageSource, Record, event_value, source_of

Logs = Sequence[Sequence[Record]]
Clock = tuple[int, ...]


class SendingFacts(msgspec.Struct, frozen=True):
    """Who sent, and how many records of its log the sender had processed."""

    partition: int
    known: int


class Judge:
    """`sending_header` names the header in which a record keeps the number of its sending."""

    def __init__(self, logs: Logs, sendings: Sequence[SendingFacts], sending_header: str) -> None:
        self._logs, self._sendings, self._header = logs, sendings, sending_header
        self._clocks = self._all_clocks()

    def orphans(self, cut: Sequence[int]) -> list[str]:
        """Records inside the cut that depend on records outside."""
        found = []
        for partition, end in enumerate(cut):
            for position in range(end):
                clock = self._clocks[partition][position]
                outside = [other for other, known in enumerate(clock) if known > cut[other]]
                if outside:
                    where = f"record {position} of partition {partition}"
                    found.append(f"{where} depends on record {clock[outside[0]] - 1} of partition {outside[0]}")
                    break
        return found

    def _all_clocks(self) -> list[list[Clock]]:
        """Partitions take turns; one waits where it logged a message whose sending is not known yet."""
        clocks: list[list[Clock]] = [[] for _ in self._logs]
        moved = True
        while moved:
            moved = False
            for partition, log in enumerate(self._logs):
                while len(clocks[partition]) < len(log):
                    clock = self._next(clocks, partition, log[len(clocks[partition])])
                    if clock is None:
                        break
                    clocks[partition].append(clock)
                    moved = True
        for partition, log in enumerate(self._logs):
            if len(clocks[partition]) < len(log):
                raise AssertionError(f"partition {partition} logged a message before it was sent")
        return clocks

    def _next(self, clocks: list[list[Clock]], partition: int, record: Record) -> Clock | None:
        own = clocks[partition]
        clock = list(own[-1]) if own else [0] * len(self._logs)
        number = record.header(self._header)
        if number is not None:
            sent = self._sendings[int.from_bytes(number, "big")]
            if sent.known > len(clocks[sent.partition]):
                return None
            if sent.known:
                clock = [max(pair) for pair in zip(clock, clocks[sent.partition][sent.known - 1], strict=True)]
        clock[partition] = len(own) + 1
        return tuple(clock)


def processed_twice(logs: Logs) -> list[str]:
    """Messages with two events."""
    seen: set[MessageSource] = set()
    found = []
    for partition, log in enumerate(logs):
        for record in log:
            source = source_of(record, INPUT) if record.kind == Kind.EVENT else None
            if source is not None and source in seen:
                found.append(f"message {source.position}/{source.index} of {source.partition} twice in {partition}")
            if source is not None:
                seen.add(source)
    return found


def lost(logs: Logs) -> list[str]:
    """Messages that an event sends and no partition processed."""
    done = {source_of(record, INPUT) for log in logs for record in log if record.kind == Kind.EVENT}
    known = {(source.partition, source.position, source.index) for source in done if source is not None}
    found = []
    for partition, log in enumerate(logs):
        for record in log:
            if record.kind == Kind.EVENT:
                value = event_value(record)
                keys = [(partition, value.source_position, index) for index in range(len(value.sends))]
                found += [
                    f"message {key[1]}/{key[2]} of partition {partition} is lost" for key in keys if key not in known
                ]
    return found


def results_twice(logs: Logs) -> list[str]:
    """Commands with two events."""
    found = []
    for partition, log in enumerate(logs):
        sources = [event_value(record).source_position for record in log if record.kind == Kind.EVENT]
        if len(sources) != len(set(sources)):
            found.append(f"a command of partition {partition} has two events")
    return found


def inside(logs: Logs, cut: Mapping[int, int] | Sequence[int], request: str) -> bool:
    """Whether a client's request is in the cut."""
    wanted = ("lk-r", request.encode())
    return any(wanted in record.headers for partition, log in enumerate(logs) for record in log[: cut[partition]])
