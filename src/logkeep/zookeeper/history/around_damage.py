"""Read around damage: which archived transactions can be read, from which log, and which cannot.

`read_around` is called only when a log turned out to be damaged or missing. It finds good records after the damage, and
searches the logs of other members for what one member's log lacks. The rest is reported, as first and last transaction.
`gaps_between` reports what no log holds, damage or not: a repair that accepted a loss leaves holes.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec

from logkeep.errors import Damaged, ObjectMissing
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.formats.zookeeper.txnlog import HEADER_BYTES, ScannedLog, scan
from logkeep.model.findings import Finding, Severity
from logkeep.model.work import Engine, Progress
from logkeep.zookeeper.history.log_task import LogSearchUnit, WantedEvents
from logkeep.zookeeper.history.pieces import history_order, once, without
from logkeep.zookeeper.history.selection import HistorySelection
from logkeep.zookeeper.model.archived import ArchivedLog, BackupView
from logkeep.zookeeper.model.findings import Class
from logkeep.zookeeper.timeline.object_check import LARGEST_SALVAGED
from logkeep.zookeeper.timeline.plan import Slice

UNREADABLE = (Damaged, ObjectMissing)
_REMEDY = "`logkeep verify` names what is damaged; another member or an earlier backup may have these transactions"


class GoodRecords(msgspec.Struct, frozen=True):
    """Consecutive good records."""

    first: int
    last: int
    start_at: int
    salvaged: bool = False
    """`start_at` is a byte of the salvaged data."""


class AroundDamage(msgspec.Struct, frozen=True, kw_only=True):
    parts: tuple[GoodRecords, ...]
    why: str
    """Why the rest cannot be read; empty when all can."""


@dataclass(frozen=True)
class UnreadableTransactions:
    """Transactions that no log gives, both ends included."""

    log: ArchivedLog
    first: int
    last: int
    why: str
    code: Class = Class.LOG_DAMAGED

    @property
    def finding(self) -> Finding:
        missing = f"transactions {hex_zxid(self.first)} to {hex_zxid(self.last)}"
        return Finding(
            code=self.code,
            severity=Severity.DAMAGE,
            where=f"{self.log.member}/{self.log.name}",
            what=f"{missing} cannot be read, and their changes are not in the answer: {self.why}",
            remedy=_REMEDY,
        )


@dataclass(frozen=True)
class Readable:
    units: tuple[LogSearchUnit, ...]
    """In the order of histories and zxids."""
    missing: tuple[UnreadableTransactions, ...]


def find_good_records(unit: LogSearchUnit, _progress: Progress) -> AroundDamage:
    """The task: what can be read of a part of a log. Raises nothing for damaged or missing bytes."""
    log, first, last = unit.piece.log, unit.piece.first, unit.piece.last
    try:
        with unit.view.open(log) as source:
            scanned = scan(source, deep=True)
        parts = list(_stretches(scanned))
        why = ", ".join(f"{one.kind} at byte {one.position}" for one in scanned.damage[:3])
    except UNREADABLE as error:
        parts, why = list(_salvaged(unit)), str(error)
    within = (msgspec.structs.replace(one, first=max(one.first, first), last=min(one.last, last)) for one in parts)
    return AroundDamage(parts=tuple(one for one in within if one.first <= one.last), why=why)


def _stretches(scanned: ScannedLog, *, salvaged: bool = False) -> Iterator[GoodRecords]:
    if scanned.records:
        yield GoodRecords(scanned.first_zxid, scanned.last_zxid, HEADER_BYTES, salvaged)
    for one in scanned.behind:
        if one.records:
            yield GoodRecords(one.first_zxid, one.last_zxid, one.start, salvaged)


def _salvaged(unit: LogSearchUnit) -> Iterator[GoodRecords]:
    """What is left of a log that cannot be unpacked as a whole."""
    try:
        with unit.view.salvage(unit.piece.log) as source:
            scanned = scan(source, deep=True, largest_record=LARGEST_SALVAGED)
    except UNREADABLE:
        return
    yield from _stretches(scanned, salvaged=True)


def gaps_between(chosen: HistorySelection) -> list[UnreadableTransactions]:
    """Transactions that no selected log holds, between others that they hold."""
    return [
        UnreadableTransactions(gap.log, gap.first, gap.last, "no log holds them", Class.LOST_TRANSACTIONS)
        for gap in chosen.gaps
    ]


def read_around(view: BackupView, engine: Engine, chosen: HistorySelection, wanted: WantedEvents) -> Readable:
    """`chosen`: what was to be read, and which other logs hold it."""
    good, missing, tried, open_parts = list[LogSearchUnit](), gaps_between(chosen), list[Slice](), list(chosen.parts)
    while open_parts:
        units = [LogSearchUnit(view, piece, wanted) for piece in open_parts]
        checked = engine.map(
            find_good_records, units, AroundDamage, label="damaged logs", weight=lambda unit: unit.piece.log.size_bytes
        )
        tried += open_parts
        holes = list[UnreadableTransactions]()
        for unit, found in zip(units, checked, strict=True):
            good += [_unit_of(unit, part) for part in found.parts]
            holes += _holes(unit.piece, found)
        open_parts = [piece for hole in holes for piece in _elsewhere(hole, chosen.held, tried)]
        missing += [left for hole in holes for left in _left(hole, _elsewhere(hole, chosen.held, tried))]
    good.sort(key=lambda unit: (history_order(unit.piece.log.history), unit.piece.first))
    missing.sort(key=lambda one: (history_order(one.log.history), one.first))
    return Readable(tuple(good), tuple(missing))


def _unit_of(unit: LogSearchUnit, part: GoodRecords) -> LogSearchUnit:
    piece = Slice(unit.piece.log, part.first, part.last)
    return replace(unit, piece=piece, start_at=part.start_at, salvaged=part.salvaged)


def _holes(piece: Slice, found: AroundDamage) -> Iterator[UnreadableTransactions]:
    """Between the parts, and at both ends. Between two epochs no number is missing if the border is known."""
    at, why = piece.first, found.why or "the log does not hold all its transactions"
    before = 0
    for part in sorted(found.parts, key=lambda part: part.first):
        if part.first > at and (before, part.first) not in piece.log.borders:
            yield UnreadableTransactions(piece.log, at, part.first - 1, why)
        at, before = max(at, part.last + 1), part.last
    if at <= piece.last:
        yield UnreadableTransactions(piece.log, at, piece.last, why)


def _elsewhere(hole: UnreadableTransactions, held: Iterable[Slice], tried: Sequence[Slice]) -> list[Slice]:
    """Parts of logs that should hold what is missing, and that were not read yet."""
    found = list[Slice]()
    for each in held:
        if each.log.history == hole.log.history and each.first <= hole.last and each.last >= hole.first:
            seen = [(piece.first, piece.last) for piece in tried if piece.log == each.log]
            within = without(max(each.first, hole.first), min(each.last, hole.last), seen)
            found += [Slice(each.log, first, last) for first, last in within]
    return list(once(found))


def _left(hole: UnreadableTransactions, pieces: Sequence[Slice]) -> Iterator[UnreadableTransactions]:
    """The parts of a hole that no other log should hold."""
    at = hole.first
    for piece in pieces:
        if piece.first > at and (at - 1, piece.first) not in piece.log.borders:
            yield UnreadableTransactions(hole.log, at, piece.first - 1, hole.why)
        at = max(at, piece.last + 1)
    if at <= hole.last:
        yield UnreadableTransactions(hole.log, at, hole.last, hole.why)
