"""The offset at which a backup cuts each log: no decided transaction is torn, and no group offset is beyond the cut.

A transaction that was open when its log's end was read has either been decided since, and then the cut moves past its
marker, or it is ongoing, and then it is recorded as open: a restore treats it as aborted. Deciding is pure; questions
to the cluster are arguments.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from logkeep.kafka.admin.offsets import LogBounds, ProducerState
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.record.documents import OpenTransaction

Pause = Callable[[float], None]
Bounds = dict[TopicPartition, LogBounds]
Producers = Mapping[TopicPartition, tuple[ProducerState, ...]]

ONGOING = "Ongoing"
_ROUNDS = 20
"""A marker follows a decision within milliseconds; a busy log may open a new transaction in every round."""
_ROUNDS_FOR_UNKNOWN = 7
"""Somewhat more than half a second. A hanging transaction never gets a marker, and may hang for years."""
_FIRST_PAUSE_S = 0.005
_LONGEST_PAUSE_S = 0.5


@dataclass(frozen=True)
class SettledCut:
    """The cut of all logs, and the transactions that are open there."""

    bounds: Bounds
    open_transactions: tuple[OpenTransaction, ...]
    """The transactions that are open at exactly these cuts."""
    undecided: tuple[OpenTransaction, ...]
    """Open transactions that no coordinator reports as ongoing, and whose marker did not come in time."""


@dataclass(frozen=True)
class OpenStates:
    """Open transactions by what their coordinators report."""

    decided: frozenset[TopicPartition]
    """Logs with a decided transaction: their ends must be read again."""
    still_open: tuple[OpenTransaction, ...]
    unknown: tuple[OpenTransaction, ...] = ()
    """No coordinator reports them: it lost them, or this user may not see them."""


def open_at_cut(
    bounds: Mapping[TopicPartition, LogBounds], producers: Mapping[TopicPartition, Iterable[ProducerState]]
) -> list[OpenTransaction]:
    """Transactions whose first record is below the cut and whose marker does not."""
    return sorted(
        OpenTransaction(log.topic, log.partition, p.producer_id, p.open_since)
        for log, states in producers.items()
        for p in states
        if 0 <= p.open_since < bounds[log].high_watermark
    )


def classify(found: Iterable[OpenTransaction], states: Mapping[int, str]) -> OpenStates:
    """Pure: a transaction that its coordinator reports as ongoing stays open; in any other state it is decided."""
    still, unknown, decided = [], [], set()
    for each in found:
        state = states.get(each.producer_id)
        if state == ONGOING:
            still.append(each)
        elif state is None:
            unknown.append(each)
        else:
            decided.add(each.log)
    return OpenStates(frozenset(decided), tuple(still), tuple(unknown))


def logs_to_settle(bounds: Mapping[TopicPartition, LogBounds]) -> list[TopicPartition]:
    """Logs in which a transaction may reach beyond the cut."""
    return [log for log, b in bounds.items() if b.last_stable < b.high_watermark]


def recently_decided(
    bounds: Mapping[TopicPartition, LogBounds], before: Producers, now: Producers
) -> frozenset[TopicPartition]:
    """Logs in which a transaction may have been decided after their end was read and before its producer was read.

    Such a transaction is no longer open anywhere, and yet its marker may be beyond the cut. It left a trace: its
    producer had a marker (a coordinator's epoch) or has begun the next transaction, and its state differs from the
    one before the end was read.
    """
    return frozenset(
        log
        for log, states in now.items()
        for p in states
        if (p.coordinator_epoch >= 0 or p.open_since >= 0)
        and not 0 <= p.open_since < bounds[log].high_watermark
        and p not in before.get(log, ())
    )


def moved_cut(before: LogBounds, fresh: LogBounds, *, held: bool) -> LogBounds:
    """Pure: the new cut of a log in which a transaction was decided since.

    No transaction reaches beyond the last stable offset, so that is the cut once it has passed the old one; the end of
    a busy log would already be inside the next transaction. Until then the marker is still to come, and the cut stays.
    In a log that is `held` by an ongoing transaction the last stable offset does not move: there the end is the cut.
    """
    if fresh.last_stable >= before.high_watermark:
        return replace(fresh, start=before.start, high_watermark=fresh.last_stable)
    return replace(fresh, start=before.start) if held else before


def settle(
    bounds: Mapping[TopicPartition, LogBounds],
    *,
    producers: Callable[[list[TopicPartition]], Mapping[TopicPartition, Iterable[ProducerState]]],
    states: Callable[[], Mapping[int, str]],
    reread: Callable[[list[TopicPartition]], Mapping[TopicPartition, LogBounds]],
    pause: Pause,
) -> SettledCut:
    """Move cuts past the markers of decided transactions until none is torn, or only ongoing ones are.

    The log start stays as it was read first: retention may move it meanwhile, and the copy notices that.
    """
    settled = dict(bounds)
    pending, wait = logs_to_settle(settled), _FIRST_PAUSE_S
    still_open: dict[TopicPartition, list[OpenTransaction]] = {}
    undecided: list[OpenTransaction] = []
    seen: Producers = {}
    for number in range(1, _ROUNDS + 1):
        now = {log: tuple(states) for log, states in producers(pending).items()} if pending else {}
        found = open_at_cut(settled, now)
        still_open |= {log: [] for log in pending}
        for each in found:
            still_open[each.log].append(each)
        open_states = classify(found, states() if found else {})
        undecided = [t for t in undecided if t.log not in pending]
        undecided += [t for t in found if t not in open_states.still_open]
        decided = set(open_states.decided)
        if number <= _ROUNDS_FOR_UNKNOWN:
            decided |= {t.log for t in open_states.unknown}
        moved = decided | recently_decided(settled, seen, now)
        if number == _ROUNDS or not moved:
            break
        if decided:  # a marker is still to come; if it is there already, waiting only lets more happen
            pause(wait)
            wait = min(wait * 2, _LONGEST_PAUSE_S)
        seen = now
        held = {t.log for t in open_states.still_open}
        for log, fresh in reread(sorted(moved)).items():
            settled[log] = moved_cut(settled[log], fresh, held=log in held)
            still_open[log] = []
        undecided = [t for t in undecided if t.log not in moved]
        pending = [log for log in logs_to_settle(settled) if log in moved]
    return SettledCut(
        bounds=settled,
        open_transactions=tuple(sorted(t for some in still_open.values() for t in some)),
        undecided=tuple(sorted(undecided)),
    )


@dataclass(frozen=True)
class Clamped:
    """A committed offset beyond the cut, and the offset that is recorded instead."""

    group: str
    log: TopicPartition
    committed: int
    recorded: int


def clamp_commits(
    group: str, commits: Mapping[TopicPartition, int], bounds: Mapping[TopicPartition, LogBounds]
) -> tuple[dict[TopicPartition, int], list[Clamped]]:
    """Committed offsets, none above the cut: brokers accept commits far beyond the end of a log."""
    kept: dict[TopicPartition, int] = {}
    clamped: list[Clamped] = []
    for log, offset in sorted(commits.items()):
        end = bounds[log].high_watermark if log in bounds else None
        kept[log] = offset if end is None else min(offset, end)
        if end is not None and offset > end:
            clamped.append(Clamped(group, log, offset, end))
    return kept, clamped
