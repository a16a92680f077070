"""The task of a participants' certificate: one log, its records in columns against the positions of the cut.

It reads every object of the log, and compares its hash. A log with transactions is read twice: which of them were
aborted is known at their ends. Python looks only at records that break a rule. For P, B and E see `in_transit`.
"""

from collections.abc import Iterator

import msgspec
import numpy as np
import numpy.typing as npt

from logkeep.checkpoint.certificate.tables import Violations
from logkeep.errors import Damaged, ObjectMissing, UnsafeName
from logkeep.formats.applications import mark_kernels as m
from logkeep.formats.kafka.batches import TRANSACTIONAL, Batches, Bytes
from logkeep.formats.kafka.records import Malformed, RecordColumns, decode
from logkeep.formats.kafka.transactions import SettledTransactions, Settling
from logkeep.model.segments import Segment
from logkeep.model.work import Progress
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.segments.log_batches import proven_batches

Longs = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class LogClaim(msgspec.Struct, frozen=True):
    """What the backup says of a log. `low` and `high` are the smallest and largest P of its groups, -1 without one."""

    topic: str
    partition: int
    start: int
    kept_to: int
    end: int
    low: int
    high: int

    @property
    def name(self) -> str:
        return f"{self.topic}/{self.partition}"


class ParticipantTables(msgspec.Struct, frozen=True):
    """Broadcast to every task."""

    stamp: str
    history: int
    checkpoint: int
    claims: tuple[LogClaim, ...]


class LogUnit(msgspec.Struct, frozen=True):
    place: SourceRef
    number: int
    """Of the log among the claims."""
    segments: tuple[Segment, ...]
    tables: ParticipantTables

    @property
    def bytes(self) -> int:
        return sum(row.stored_bytes for row in self.segments)


class CheckedLog(msgspec.Struct):
    """What the records of one log say."""

    number: int
    records: int = 0
    own: int = 0
    """Of the records, those that this application stamped."""
    others: int = 0
    """Those that carry the stamp of another application, another history, or one that cannot be read."""
    replaced: int = 0
    """Of its own that are kept, those with a cause after the end of its log: the log was another one then."""
    violations: Violations = msgspec.field(default_factory=Violations)
    in_transit: list[int] = []
    open_transactions: list[int] = []
    damaged: tuple[str, str] | None = None
    """The object that could not be read to its end, and why: nothing above is complete."""


def check_log(unit: LogUnit, progress: Progress) -> CheckedLog:
    """A task: check the records of one log from its start to E."""
    check, settled, at = ParticipantCheck(unit.tables, unit.number), None, [""]
    try:
        for buffer, batches in _batches(unit, at, progress):
            if settled is None and (batches.headers["attributes"] & TRANSACTIONAL).any():
                settled = _settled(unit, at)
                end = unit.tables.claims[unit.number].end
                check.facts.open_transactions = [one.first_offset for one in settled.open if one.first_offset < end]
            check.take(buffer, batches, settled)
    except (Damaged, ObjectMissing, UnsafeName) as error:  # a store that does not answer is not damage
        check.facts.damaged = (at[0], error.what)
    return check.facts


def _batches(unit: LogUnit, at: list[str], progress: Progress) -> Iterator[tuple[Bytes, Batches]]:
    after = -1
    for row in unit.segments:
        if row.has_object:
            at[0] = layout.segment(unit.place.source, row)
            for buffer, batches in proven_batches(unit.place, row, after, progress):
                yield buffer, batches
                after = int(batches.last_offsets[-1]) if len(batches) else after


def _settled(unit: LogUnit, at: list[str]) -> SettledTransactions:
    """A transaction that is decided after E counts as decided."""
    settling, current = Settling(), at[0]
    for buffer, batches in _batches(unit, at, lambda _: None):
        settling.take(buffer, batches)
    at[0] = current  # which was left to read the others: only an error of theirs is one of another object
    return settling.settled()


class ParticipantCheck:
    """Give it every batch of a log in order, then read `facts`.

    V2   no record that is kept carries the id of the cut or a later one
    V3   a stamp is older than the cut exactly where its cause is inside it
    V4   what is kept has its cause inside the cut
    V5   the records in transit are those that the backup names: `in_transit` has them
    V8   records can be read
    """

    def __init__(self, tables: ParticipantTables, number: int) -> None:
        self._tables, self._claim, self.facts = tables, tables.claims[number], CheckedLog(number)
        self._application = np.frombuffer(bytes.fromhex(tables.stamp), np.uint8)
        topics = list(dict.fromkeys(claim.topic for claim in tables.claims))
        names = [topic.encode() for topic in topics]
        self._topics, self._ends = np.frombuffer(b"".join(names), np.uint8), np.cumsum([len(each) for each in names])
        width = 1 + max(claim.partition for claim in tables.claims)
        self._low, self._high, self._log_ends = (np.full((len(topics), width), -1, np.int64) for _ in range(3))
        for claim in tables.claims:
            at = topics.index(claim.topic), claim.partition
            self._low[at], self._high[at], self._log_ends[at] = claim.low, claim.high, claim.end

    def take(self, buffer: Bytes, batches: Batches, settled: SettledTransactions | None) -> None:
        inside = batches.base_offsets < self._claim.end
        batches = Batches(batches.headers[inside], batches.positions[inside])
        for part in decode(buffer, batches) if len(batches) else ():
            if isinstance(part, Malformed):
                self.facts.violations.add("V8", f"{self._claim.name}: {part}")
                continue
            seen = ~part.control
            if settled is not None:
                seen &= settled.visible(part.batches)[part.batch]
            self._take(part.chosen(seen).within(self._claim.start, self._claim.end))

    def _take(self, part: RecordColumns) -> None:
        marks = np.empty((len(part), m.COLUMNS), np.int64)
        m.read_marks(part.data, part.spans, self._application, self._topics, self._ends, marks)
        own = (marks[:, m.STAMP] == m.OURS) & (marks[:, m.HISTORY] == self._tables.history)
        self.facts.records += len(part)
        self.facts.own += int(own.sum())
        self.facts.others += int((~own & (marks[:, m.STAMP] != m.ABSENT)).sum())
        marks, at = marks[own], part.offsets[own]
        kept, older = at < self._claim.kept_to, marks[:, m.CHECKPOINT] < self._tables.checkpoint
        inside, replaced = self._caused_inside(marks, older)
        replaced &= kept
        self.facts.replaced += int(replaced.sum())
        self._break("V2", at, kept & ~older, "carries the id of the cut or a later one")
        self._break("V3", at, (inside != older) & ~replaced, "has a stamp that contradicts its cause")
        self._break("V4", at, kept & ~inside & ~replaced, "was made of a record after the cut")
        self.facts.in_transit += at[~kept & inside].tolist()

    def _caused_inside(self, marks: Longs, older: Flags) -> tuple[Flags, Flags]:
        """As `in_transit.in_transit` decides: the cause, and the stamp where only that can say which group it was.

        And whether the cause is after E of its log. A record that is kept was there before any E was read, and so
        was its cause: such a position is one of an earlier log of the same name, deleted or restored with new offsets.
        """
        topics, partitions = marks[:, m.SOURCE] >> 2, marks[:, m.SOURCE_PARTITION]
        positions = marks[:, m.SOURCE_POSITION]
        known = (marks[:, m.SOURCE] & 3) == m.OURS
        known &= (partitions >= 0) & (partitions < self._low.shape[1])
        topics, partitions = np.where(known, topics, 0), np.where(known, partitions, 0)
        low, high = self._low[topics, partitions], self._high[topics, partitions]
        decided = np.where(positions < low, True, np.where(positions < high, older, False))
        known &= low >= 0
        found: Flags = np.where(known, decided, older)
        return found, known & (positions >= self._log_ends[topics, partitions])

    def _break(self, rule: str, offsets: Longs, wrong: Flags, what: str) -> None:
        bad = offsets[wrong]
        if len(bad):
            names = (f"{self._claim.name}: the record at {at} {what}" for at in bad[:20].tolist())
            self.facts.violations.add(rule, *names, count=len(bad))
