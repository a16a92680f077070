"""The tasks of a certificate: one reads the system keys of a snapshot, one a partition's log with its snapshot.

Each reads every byte of its objects once and compares their hashes. Only a log with transactions is read twice: which
of them were aborted is known at their ends.
"""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from logkeep.checkpoint.certificate.log_check import LogCheck
from logkeep.checkpoint.certificate.snapshot_file import is_sqlite, read_facts, user_items
from logkeep.checkpoint.certificate.state_fold import differing, digest, overlaid
from logkeep.checkpoint.certificate.tables import CutTables, PartitionFacts, SystemKeys
from logkeep.errors import Damaged, ObjectMissing, UnsafeName
from logkeep.formats.kafka.batches import TRANSACTIONAL, Batches, Bytes
from logkeep.formats.kafka.transactions import Settling
from logkeep.model.segments import Segment
from logkeep.model.work import Progress
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.segments.log_batches import proven_batches
from logkeep.repository.segments.reader import proven_pieces


class SystemKeysUnit(msgspec.Struct, frozen=True):
    place: SourceRef
    partition: int
    segment: Segment

    @property
    def bytes(self) -> int:
        return self.segment.stored_bytes


class PartitionUnit(msgspec.Struct, frozen=True):
    """A log, the snapshot below it, and the slice of the keys whose state is folded."""

    place: SourceRef
    partition: int
    segments: tuple[Segment, ...]
    snapshot: Segment | None
    tables: CutTables
    base: SystemKeys
    part: tuple[int, int] = (0, 1)
    with_ids: bool = False

    @property
    def bytes(self) -> int:
        return sum(row.stored_bytes for row in self.segments) + (self.snapshot.stored_bytes if self.snapshot else 0)


def survey_snapshot(unit: SystemKeysUnit, progress: Progress) -> SystemKeys:
    """A task: what a snapshot says besides the user's keys."""
    with tempfile.TemporaryDirectory(prefix="logkeep-cut-") as folder:
        path = Path(folder, "snapshot")
        try:
            _unpack(unit.place, unit.segment, path, progress)
            return read_facts(path, unit.partition)
        except (Damaged, ObjectMissing, UnsafeName) as error:
            return SystemKeys(unit.partition, problem=error.what)


def check_partition(unit: PartitionUnit, progress: Progress) -> PartitionFacts:
    """A task: check one log, and fold its writes over its snapshot."""
    check = LogCheck(unit.tables, unit.partition, unit.base, unit.part, with_ids=unit.with_ids)
    reading = _Reading(unit, progress)
    try:
        for buffer, batches in reading.batches():
            if check.settled is None and (batches.headers["attributes"] & TRANSACTIONAL).any():
                check.settled = _settled(unit, reading).settled()
                check.facts.open_transactions = [each.first_offset for each in check.settled.open]
            check.take(buffer, batches)
    except (Damaged, ObjectMissing, UnsafeName) as error:  # a store that does not answer is not damage
        check.facts.damaged = (reading.name, error.what)
        return check.facts
    _fold_state(unit, check, progress)
    return finished(check)


def finished(check: LogCheck) -> PartitionFacts:
    """The facts with the lists and sums of messages."""
    check.finish()
    facts, messages = check.facts, check.messages
    facts.sent, facts.received = messages.sent, messages.received
    facts.pending, facts.lows = messages.pending, messages.lows
    facts.memory = {sender: keys.tolist() for sender, keys in messages.memory.items()}
    facts.ids = {name: np.concatenate(keys).tobytes() for name, keys in (messages.ids or {}).items()}
    return facts


@dataclass
class _Reading:
    unit: PartitionUnit
    progress: Progress
    name: str = ""

    def batches(self) -> Iterator[tuple[Bytes, Batches]]:
        after = -1
        for row in self.unit.segments:
            if row.has_object:
                self.name = layout.segment(self.unit.place.source, row)
                for buffer, batches in proven_batches(self.unit.place, row, after, self.progress):
                    yield buffer, batches
                    after = int(batches.last_offsets[-1]) if len(batches) else after


def _settled(unit: PartitionUnit, reading: _Reading) -> Settling:
    """How the transactions of the log end, inside the cut. An object that cannot be read is the `name` of `reading`."""
    settling, end = Settling(), unit.tables.claims[unit.partition].cut_end
    whole = _Reading(unit, lambda _: None)
    try:
        for buffer, batches in whole.batches():
            inside = batches.base_offsets < end
            settling.take(buffer, Batches(batches.headers[inside], batches.positions[inside]))
    except (Damaged, ObjectMissing, UnsafeName):
        reading.name = whole.name
        raise
    return settling


def _fold_state(unit: PartitionUnit, check: LogCheck, progress: Progress) -> None:
    if unit.snapshot is None:
        return fold_state(check, None)
    with tempfile.TemporaryDirectory(prefix="logkeep-cut-") as folder:
        path = Path(folder, "snapshot")
        try:
            _unpack(unit.place, unit.snapshot, path, progress)
            fold_state(check, path if is_sqlite(path) else None)
        except (Damaged, ObjectMissing, UnsafeName) as error:
            check.facts.snapshot_problem = error.what
    return None


def fold_state(check: LogCheck, snapshot: Path | None) -> None:
    """The digest of the state at the cut; what the log wrote before the snapshot must be in it. Raises Damaged."""
    facts = check.facts
    rows = check.after.last()
    if snapshot is not None:
        stored = check.snapshot_fold()
        for block in user_items(snapshot):
            stored.add(check.snapshot_rows(block))
        base = stored.last()
        wrong, facts.keys_from_log, unwritten = differing(check.before.last(), base)
        names = (
            f"partition {facts.partition}: the write of the event at {at} is not in the snapshot" for at in wrong[:20]
        )
        if wrong:
            facts.violations.add("V10", *names, count=len(wrong))
        if unwritten and check.from_the_start:
            what = f"partition {facts.partition}: {unwritten} keys of the snapshot were written by no event"
            facts.violations.add("V10", what, count=unwritten)
        rows = overlaid([base, rows])
    facts.state_digest, facts.keys = f"{digest(rows):064x}", int((rows[:, 3] == 0).sum())


def _unpack(place: SourceRef, row: Segment, path: Path, progress: Progress) -> None:
    """Raises Damaged unless the stored bytes have the hash of their row."""
    with path.open("wb") as file:
        file.writelines(proven_pieces(place, row, progress))
