"""Where to cut each log so that no decided transaction is torn, and no group stands beyond the cut.

A transaction that was open when its log's end was read has either been decided since, and then the cut moves behind
its marker, or it goes on, and then it is recorded as open: a restore counts it as aborted. Deciding is pure; what has
to be asked again is handed in as functions.
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
"""Markers follow a decision within milliseconds; a busy log may open a new transaction in every round."""
_ROUNDS_FOR_UNKNOWN = 7
"""Somewhat more than half a second. One that hangs has no marker on its way, and may hang for years."""
_FIRST_PAUSE_S = 0.005
_LONGEST_PAUSE_S = 0.5


@dataclass(frozen=True)
class SettledCut:
    """Where all logs are cut, and what reaches over that."""

    bounds: Bounds
    open_transactions: tuple[OpenTransaction, ...]
    """Always those of these very cuts."""
    undecided: tuple[OpenTransaction, ...]
    """Those of them that no coordinator calls ongoing, and whose marker did not come while we waited."""


@dataclass(frozen=True)
class Question:
    """What must be asked again, and what is open for good as far as can be told."""

    moved: frozenset[TopicPartition]
    still_open: tuple[OpenTransaction, ...]
    unknown: tuple[OpenTransaction, ...] = ()
    """No coordinator tells of them: their coordinator forgot them, or we may not know."""


def open_at_cut(
    bounds: Mapping[TopicPartition, LogBounds], producers: Mapping[TopicPartition, Iterable[ProducerState]]
) -> list[OpenTransaction]:
    """Transactions whose first record lies below the cut and whose marker does not."""
    return sorted(
        OpenTransaction(log.topic, log.partition, p.producer_id, p.open_since)
        for log, states in producers.items()
        for p in states
        if 0 <= p.open_since < bounds[log].high_watermark
    )


def judge(found: Iterable[OpenTransaction], states: Mapping[int, str]) -> Question:
    """Pure: those that their coordinator calls ongoing stay open; in any other state they have been decided."""
    still, unknown, moved = [], [], set()
    for each in found:
        state = states.get(each.producer_id)
        if state == ONGOING:
            still.append(each)
        elif state is None:
            unknown.append(each)
        else:
            moved.add(each.log)
    return Question(frozenset(moved), tuple(still), tuple(unknown))


def torn(bounds: Mapping[TopicPartition, LogBounds]) -> list[TopicPartition]:
    """Logs in which a transaction may reach over the cut."""
    return [log for log, b in bounds.items() if b.last_stable < b.high_watermark]


def restless(
    bounds: Mapping[TopicPartition, LogBounds], before: Producers, now: Producers
) -> frozenset[TopicPartition]:
    """Logs in which a transaction may have been decided after their end was read and before its producer was asked.

    Such a one is open nowhere any more, and yet its marker may lie behind the cut. It left a trace: its producer had
    a marker (a coordinator's epoch) or has begun the next, and does not look as it did before the end was read.
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
    """Pure: the cut of a log in which a transaction was decided since.

    Nothing reaches over the last stable offset, so that is the cut once it has passed the old one; the end of a busy
    log would be inside of the next transaction already. Until then the marker is on its way, and the cut stays. In a
    log that is `held` by an ongoing transaction the last stable offset stands still: there it is the end that counts.
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
    """Move cuts behind the markers of decided transactions until none is torn, or only ongoing ones are.

    The log start stays as it was read first: retention may move it meanwhile, and that is for the copy to notice.
    """
    settled = dict(bounds)
    pending, wait = torn(settled), _FIRST_PAUSE_S
    still_open: dict[TopicPartition, list[OpenTransaction]] = {}
    undecided: list[OpenTransaction] = []
    seen: Producers = {}
    for number in range(1, _ROUNDS + 1):
        now = {log: tuple(states) for log, states in producers(pending).items()} if pending else {}
        found = open_at_cut(settled, now)
        still_open |= {log: [] for log in pending}
        for each in found:
            still_open[each.log].append(each)
        question = judge(found, states() if found else {})
        undecided = [t for t in undecided if t.log not in pending] + [t for t in found if t not in question.still_open]
        decided = set(question.moved)
        if number <= _ROUNDS_FOR_UNKNOWN:
            decided |= {t.log for t in question.unknown}
        moved = decided | restless(settled, seen, now)
        if number == _ROUNDS or not moved:
            break
        if decided:  # a marker is on its way; where one has come already, waiting only lets more happen
            pause(wait)
            wait = min(wait * 2, _LONGEST_PAUSE_S)
        seen = now
        held = {t.log for t in question.still_open}
        for log, fresh in reread(sorted(moved)).items():
            settled[log] = moved_cut(settled[log], fresh, held=log in held)
            still_open[log] = []
        undecided = [t for t in undecided if t.log not in moved]
        pending = [log for log in torn(settled) if log in moved]
    return SettledCut(
        bounds=settled,
        open_transactions=tuple(sorted(t for some in still_open.values() for t in some)),
        undecided=tuple(sorted(undecided)),
    )


@dataclass(frozen=True)
class Clamped:
    """A group's position that the archive cannot serve, and where it is recorded instead."""

    group: str
    log: TopicPartition
    committed: int
    recorded: int


def clamp(
    group: str, commits: Mapping[TopicPartition, int], bounds: Mapping[TopicPartition, LogBounds]
) -> tuple[dict[TopicPartition, int], list[Clamped]]:
    """Positions not above the cut; brokers accept commits far beyond the end of a log."""
    kept: dict[TopicPartition, int] = {}
    clamped: list[Clamped] = []
    for log, offset in sorted(commits.items()):
        end = bounds[log].high_watermark if log in bounds else None
        kept[log] = offset if end is None else min(offset, end)
        if end is not None and offset > end:
            clamped.append(Clamped(group, log, offset, end))
    return kept, clamped
