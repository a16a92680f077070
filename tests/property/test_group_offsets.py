"""Whatever a log was and whatever came back of it: a group goes on with the record it would have read next.

The model is as slow as it is plain: a source log is a list of records, the target another, and the next record that a
group reads is found by looking from its position on.
"""

from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from logkeep.formats.run_map.file_format import decode, encode
from logkeep.formats.run_map.runs import RunMap, RunMapBuilder
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.record.documents import CommitRecord
from logkeep.kafka.restore.plan.group_offsets import (
    GroupOffsets,
    MappedLog,
    Reason,
    Routes,
    RouteTable,
    TranslatedOffset,
    UnchangedLog,
)
from tests.property.untimed import many

OLD, NEW = TopicPartition("old", 3), TopicPartition("new", 1)


def translate_commits(commits: list[CommitRecord], routes: Routes) -> GroupOffsets:
    return RouteTable(routes).translate(commits)


@dataclass(frozen=True)
class Log:
    """Source offsets that hold a record that a consumer sees, of `[start, end)`."""

    start: int
    end: int
    records: tuple[int, ...]


@st.composite
def logs(draw: st.DrawFn) -> Log:
    start = draw(st.integers(0, 6))
    end = start + draw(st.integers(0, 20))
    return Log(start, end, tuple(o for o in range(start, end) if draw(st.booleans())))


def appended(log: Log, base: int, trailing: int = 0) -> tuple[RunMap, dict[int, int]]:
    """A restore that puts records one after the other, and the target as {offset: source offset}."""
    builder = RunMapBuilder(log.start, log.end, base)
    builder.extend(np.array([(o, 1) for o in log.records], np.int64).reshape(-1, 2))
    builder.skip_to(base + len(log.records) + trailing)
    return decode(encode(builder.finish())), {base + i: o for i, o in enumerate(log.records)}


def commit(offset: int, log: Log, partition: int = 3) -> CommitRecord:
    """As a backup records it: not above the cut, which may be later than what comes back."""
    cut = log.end + 4
    return CommitRecord("old", partition, min(offset, cut), offset, 7, "note")


def one(record: CommitRecord, place: MappedLog | UnchangedLog) -> TranslatedOffset:
    positions = translate_commits([record], {OLD: [place]})
    assert not positions.left_out
    (placed,) = positions.placed
    assert (placed.target, placed.metadata, placed.committed, placed.again) == (NEW, "note", record.committed, 0)
    return placed


@many
@given(logs(), st.integers(0, 40), st.integers(0, 9), st.integers(0, 2))
def test_the_next_record_is_the_same_record(log: Log, offset: int, base: int, trailing: int) -> None:
    runs, target = appended(log, base, trailing)
    placed = one(commit(offset, log), MappedLog(NEW, runs))
    expected = next((o for o in log.records if o >= offset), None)
    assert next((target[t] for t in sorted(target) if t >= placed.offset), None) == expected
    assert placed.offset == (runs.target_end if expected is None else next(t for t in target if target[t] == expected))
    _check_reason(placed, offset, log, expected)


def _check_reason(placed: TranslatedOffset, offset: int, log: Log, expected: int | None) -> None:
    if offset > log.end:
        assert placed.reason is Reason.BEYOND
    elif offset < log.start:
        assert placed.reason is Reason.EXPIRED
    elif expected is None:
        assert placed.reason is Reason.END
    else:
        assert placed.reason is (Reason.EXACT if expected == offset else Reason.HOLE)
    assert placed.exact == (log.start <= offset <= log.end)


@many
@given(logs(), st.integers(0, 40))
def test_kept_offsets_stay_where_they_are_inside_of_the_log(log: Log, offset: int) -> None:
    placed = one(commit(offset, log), UnchangedLog(NEW, log.start, log.end))
    expected = next((o for o in log.records if o >= offset), None)
    assert next((o for o in log.records if o >= placed.offset), None) == expected
    assert placed.offset == (offset if log.start <= offset <= log.end else log.start if offset < log.start else log.end)
    assert placed.exact == (log.start <= offset <= log.end)


@st.composite
def repartitioned(draw: st.DrawFn) -> tuple[dict[int, Log], list[tuple[int, int, int]], int]:
    """Some logs, all their records in the order in which they come to `targets` partitions, and that number."""
    sources = {p: draw(logs()) for p in range(draw(st.integers(1, 3)))}
    targets = draw(st.integers(1, 3))
    queues = {p: list(log.records) for p, log in sources.items()}
    sent: list[tuple[int, int, int]] = []
    while any(queues.values()):
        p = draw(st.sampled_from([p for p in queues if queues[p]]))
        sent.append((p, queues[p].pop(0), draw(st.integers(0, targets - 1))))
    return sources, sent, targets


@many
@given(repartitioned(), st.data())
def test_after_repartitioning_nothing_is_missed_and_re_reads_are_counted(
    made: tuple[dict[int, Log], list[tuple[int, int, int]], int], data: st.DataObject
) -> None:
    sources, sent, targets = made
    commits = {p: data.draw(st.none() | st.integers(0, 30)) for p in sources}
    routes, logs_now = _routed(sources, sent, targets)
    records = [commit(o, sources[p], p) for p, o in commits.items() if o is not None]
    placed = {p.target.partition: p for p in translate_commits(records, routes).placed}
    assert set(placed) == (set(range(targets)) if records else set())
    for q, position in placed.items():
        unread = [t for t, (p, o) in enumerate(logs_now[q]) if o >= (commits[p] or 0)]
        assert position.offset == min(unread, default=len(logs_now[q]))
        assert position.again == len(logs_now[q]) - position.offset - len(unread)


def _routed(
    sources: dict[int, Log], sent: list[tuple[int, int, int]], targets: int
) -> tuple[dict[TopicPartition, list[MappedLog | UnchangedLog]], list[list[tuple[int, int]]]]:
    logs_now: list[list[tuple[int, int]]] = [[] for _ in range(targets)]
    builders = {(p, q): RunMapBuilder(log.start, log.end, 0) for p, log in sources.items() for q in range(targets)}
    for p, offset, q in sent:
        builders[p, q].place(np.array([(offset, len(logs_now[q]), 1)], np.int64))
        logs_now[q].append((p, offset))
    for (_, q), builder in builders.items():
        builder.skip_to(len(logs_now[q]))
    routes: dict[TopicPartition, list[MappedLog | UnchangedLog]] = {
        TopicPartition("old", p): [
            MappedLog(TopicPartition("new", q), builders[p, q].finish()) for q in range(targets)
        ]
        for p in sources
    }  # fmt: skip
    return routes, logs_now
