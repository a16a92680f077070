"""Checks the records of one partition's log in columns: Python looks only at records that break a rule.

V2   a stamp is not above the id that the receiver had logged before
V3   a stamp is not below the id that the sender had at the message's command
V4   the command that sent a message is inside the cut of its partition
V6   a create ends its batch; no batch reaches over the cut
V7   events follow the order of their commands, one for each, and repeat its message
V8   positions without holes, known kinds, histories and leader epochs that do not fall
"""

import numpy as np
import numpy.typing as npt

from logkeep.checkpoint.certificate import state_fold
from logkeep.checkpoint.certificate.message_fold import MessageFold
from logkeep.checkpoint.certificate.state_fold import StateFold, rows_of_items, write_rows
from logkeep.checkpoint.certificate.tables import (
    LARGEST_POSITION,
    CutTables,
    Longs,
    PartitionFacts,
    SystemKeys,
    message_keys,
)
from logkeep.checkpoint.records import CheckpointDocument, Kind
from logkeep.errors import Damaged, FormatTooNew
from logkeep.formats.applications import event_kernels as e
from logkeep.formats.applications import mark_kernels as m
from logkeep.formats.kafka.batches import Batches, Bytes
from logkeep.formats.kafka.records import Malformed, RecordColumns, decode
from logkeep.formats.kafka.transactions import SettledTransactions
from logkeep.repository.chain.documents import unseal

Flags = npt.NDArray[np.bool_]
_PARTITION_SHIFT = np.int64(44)
_NO_VALUE = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
_NOT_LOGGED = "carries an id that was not logged before"


class LogCheck:
    """Give it every batch in order, then `finish` it and read `facts`."""

    def __init__(
        self,
        tables: CutTables,
        partition: int,
        base: SystemKeys,
        part: tuple[int, int] = (0, 1),
        *,
        with_ids: bool = False,
    ) -> None:
        self._tables, self._claim = tables, tables.claims[partition]
        self.facts = PartitionFacts(partition)
        self.settled: SettledTransactions | None = None
        self._part = part
        self.before, self.after = StateFold(*part), StateFold(*part)
        self.messages = MessageFold(tables, partition, base, with_ids=with_ids)
        self._application = np.frombuffer(bytes.fromhex(tables.application), np.uint8)
        topic = f"{tables.name}.log".encode()
        self._topic, self._topic_ends = np.frombuffer(topic, np.uint8), np.array([len(topic)])
        self._snapshot, self._epoch, self._history = base.position, -1, 0
        below = 0 <= base.position < self._claim.log_start
        self._known = self.from_the_start or below
        self._ids, self._positions = [base.checkpoint if below else 0], [-1]
        self._largest_early = (0, -1)
        self._last_source = -1
        self._waiting = np.empty((0, 5), np.int64)
        self._floor_keys, self._floor_ids = _floors(tables)
        self._cut_ends = np.array([claim.cut_end for claim in tables.claims], np.int64)

    def take(self, buffer: Bytes, batches: Batches) -> None:
        claim = self._claim
        inside = (batches.last_offsets >= claim.log_start) & (batches.base_offsets < claim.cut_end)
        batches = Batches(batches.headers[inside], batches.positions[inside])
        if not len(batches):
            return
        self._check_batches(batches)
        for part in decode(buffer, batches):
            if isinstance(part, Malformed):
                self._break("V8", str(part))
            else:
                self._take(self._visible(part).within(claim.log_start, claim.cut_end))

    @property
    def from_the_start(self) -> bool:
        """Whether the log has every event since the application began."""
        return self._claim.log_start == 0

    def finish(self) -> None:
        """After the last batch: compare what was received before the first create of the log with that create."""
        found, position = self._largest_early
        if len(self._ids) > 1 and found >= self._ids[1]:
            self._break_rows("V2", np.array([position]), np.array([True]), _NOT_LOGGED)

    def snapshot_fold(self) -> StateFold:
        """For the keys of the snapshot, of the same slice."""
        return StateFold(*self._part)

    def snapshot_rows(self, items: list[tuple[str, bytes]]) -> state_fold.Words:
        rows, data = rows_of_items(items, self._tables.seed)
        self.note_external(data, rows)
        return rows

    def _visible(self, part: RecordColumns) -> RecordColumns:
        seen = ~part.control
        if self.settled is not None:
            seen &= self.settled.visible(part.batches)[part.batch]
        return part if seen.all() else part.chosen(seen)

    def _check_batches(self, batches: Batches) -> None:
        firsts, lasts = batches.base_offsets, batches.last_offsets
        expected = np.concatenate([[self.facts.end if self.facts.end >= 0 else self._claim.log_start], lasts[:-1] + 1])
        for row in np.flatnonzero(firsts != expected)[:20].tolist():
            self._break("V8", f"positions {expected[row]} to {firsts[row] - 1} are missing")
        epochs = np.concatenate([[self._epoch], batches.headers["leader_epoch"].astype(np.int64)])
        for row in np.flatnonzero(np.diff(epochs) < 0)[:20].tolist():
            self._break("V8", f"the batch at {firsts[row]} has the leader epoch {epochs[row + 1]} after {epochs[row]}")
        if int(lasts[-1]) >= self._claim.cut_end:
            self._break("V6", f"the batch at {firsts[-1]} ends at {lasts[-1]}, after the cut at {self._claim.cut_end}")
        self.facts.first = int(firsts[0]) if self.facts.first < 0 else self.facts.first
        self.facts.end, self._epoch = int(lasts[-1]) + 1, int(epochs[-1])

    def _take(self, part: RecordColumns) -> None:
        if not len(part):
            return
        marks = np.empty((len(part), m.COLUMNS), np.int64)
        m.read_marks(part.data, part.spans, self._application, self._topic, self._topic_ends, marks)
        kinds = marks[:, m.KIND]
        self.facts.records += len(part)
        self.facts.last_record = int(part.offsets[-1]), int(kinds[-1])
        self._break_rows("V8", part.offsets, (kinds < Kind.COMMAND) | (kinds > Kind.ACK), "has no kind that is known")
        for row in np.flatnonzero((kinds >= Kind.CREATE) & (kinds <= Kind.IGNORED)).tolist():
            self._checkpoint(part, row, int(kinds[row]))
        self._stamps(part.offsets, marks)
        self._events(part, marks)
        self._acknowledgements(part, marks)

    def _checkpoint(self, part: RecordColumns, row: int, kind: int) -> None:
        position = int(part.offsets[row])
        try:
            document = unseal(part.value(row) or b"", CheckpointDocument, f"record at {position}")
        except (Damaged, FormatTooNew) as error:
            return self._break("V1", f"the record at {position}: {error.what}")
        if document.application != self._tables.application or document.history > self._tables.history:
            self._break("V1", f"the record at {position} belongs to another application or history")
        elif kind == Kind.CREATE:
            self._create(part, row, document)
        elif kind == Kind.IGNORED:
            self._ignore(document)
        elif (
            kind == Kind.CREATED
            and document.source_position >= self._claim.log_start
            and ((document.id, document.source_position) not in self.facts.creates)
        ):
            self._break("V1", f"the created at {position} names no create that took effect")
        return None

    def _create(self, part: RecordColumns, row: int, document: CheckpointDocument) -> None:
        position = int(part.offsets[row])
        self.facts.final_create = document.id, document.history, document.nonce
        if position != int(part.batches.last_offsets[part.batch[row]]):
            self._break("V6", f"the create at {position} does not end its batch")
        if document.id > self._ids[-1]:
            self._ids.append(document.id)
            self._positions.append(position)
            self.facts.creates.append((document.id, position))

    def _ignore(self, document: CheckpointDocument) -> None:
        """The create had no effect: one with its id was logged before the log begins. Its answer is the next record."""
        if not self._known and len(self._ids) == 2 and self._positions[1] == document.source_position:
            del self._ids[1], self._positions[1], self.facts.creates[-1]

    def _stamps(self, offsets: Longs, marks: Longs) -> None:
        stamps = marks[:, m.STAMP]
        self.facts.foreign += int((stamps == m.FOREIGN).sum())
        rows = np.flatnonzero(
            (stamps == m.OURS) & ((marks[:, m.KIND] == Kind.COMMAND) | (marks[:, m.KIND] == Kind.ACK))
        )
        marks, at = marks[rows], offsets[rows]
        if not len(rows):
            return
        ids, histories = marks[:, m.CHECKPOINT], marks[:, m.HISTORY]
        highest = np.maximum.accumulate(np.concatenate([[self._history], histories]))
        wrong = (histories < highest[1:]) | (histories > self._tables.history)
        self._break_rows("V8", at, wrong, "is stamped by another history")
        self._history = int(highest[-1])
        place = np.searchsorted(self._positions, at) - 1
        early = (place == 0) & (not self._known)
        above = ~early & (ids > np.array(self._ids)[place])
        self._break_rows("V2", at, above | (ids >= self._tables.checkpoint), _NOT_LOGGED)
        if early.any() and int(ids[early].max()) > self._largest_early[0]:
            self._largest_early = int(ids[early].max()), int(at[early][int(ids[early].argmax())])
        self._sources(at, marks, ids)

    def _sources(self, at: Longs, marks: Longs, ids: Longs) -> None:
        partitions, positions = marks[:, m.SOURCE_PARTITION], marks[:, m.SOURCE_POSITION]
        known = (marks[:, m.SOURCE] == m.OURS) & (partitions >= 0) & (partitions < len(self._cut_ends))
        known &= (positions >= 0) & (positions < LARGEST_POSITION)
        self._break_rows("V4", at, ~known, "names no command of this application")
        at, ids, partitions, positions = at[known], ids[known], partitions[known], positions[known]
        outside = positions >= self._cut_ends[partitions]
        self._break_rows("V4", at, outside, "was sent by a command after the cut")
        place = np.searchsorted(self._floor_keys, (partitions << _PARTITION_SHIFT) | positions) - 1
        self._break_rows("V3", at, ids < self._floor_ids[place], "carries an older id than its sender had")

    def _events(self, part: RecordColumns, marks: Longs) -> None:
        rows = np.flatnonzero(marks[:, m.KIND] == Kind.EVENT)
        events = np.empty((len(rows), e.EVENT_COLUMNS), np.int64)
        e.count_events(part.data, part.spans, rows, events)
        good = (events[:, e.GOOD] == 1) & (events[:, e.SOURCE_AT] < LARGEST_POSITION)
        self._break_rows("V8", part.offsets[rows], ~good, "is an event that cannot be read")
        rows, events = rows[good], events[good]
        self._order(part.offsets, marks, rows, events[:, e.SOURCE_AT])
        self._writes(part, part.offsets[rows], events)
        self._sends(part, part.offsets[rows], events)
        given = (marks[rows, m.INPUT] == m.OURS) & (part.offsets[rows] > self._snapshot)
        found = marks[rows[given]]
        keys = message_keys(found[:, m.INPUT_POSITION], found[:, m.INPUT_INDEX])
        at = part.offsets[rows[given]]
        self.messages.receive(found[:, m.INPUT_PARTITION], keys, found[:, m.LOW], at, self.facts.violations)

    def _order(self, offsets: Longs, marks: Longs, rows: Longs, sources: Longs) -> None:
        """Every event has the command that it names before it; commands without events are those that came again."""
        chosen = marks[:, m.KIND] == Kind.COMMAND
        columns = [m.SOURCE, m.SOURCE_PARTITION, m.SOURCE_POSITION, m.SOURCE_INDEX]
        commands = np.concatenate([offsets[chosen][:, None], marks[chosen][:, columns]], axis=1)
        waiting = np.concatenate([self._waiting, commands])
        before = np.concatenate([[self._last_source], sources])
        wrong = (np.diff(before) <= 0) | (sources >= offsets[rows])
        ours = sources >= self._claim.log_start
        place = np.minimum(np.searchsorted(waiting[:, 0], sources), max(len(waiting) - 1, 0))
        if len(waiting):
            inputs = marks[rows][:, [m.INPUT, m.INPUT_PARTITION, m.INPUT_POSITION, m.INPUT_INDEX]]
            other = (inputs[:, 0] != m.ABSENT) & (waiting[place, 1:] != inputs).any(axis=1)
            wrong |= ours & ((waiting[place, 0] != sources) | other)
        else:
            wrong |= ours
        self._break_rows("V7", offsets[rows], wrong, "is not an event of the next command")
        self._last_source = int(before.max())
        self._waiting = waiting[waiting[:, 0] > self._last_source]

    def _writes(self, part: RecordColumns, at: Longs, events: Longs) -> None:
        rows = write_rows(part.data, at, events, self._tables.seed)
        self.note_external(part.data, rows)
        early = rows[:, e.AT].astype(np.int64) <= self._snapshot
        self.before.add(rows[early])
        self.after.add(rows[~early])

    def note_external(self, data: npt.NDArray[np.uint8], rows: state_fold.Words) -> None:
        """The largest position of each other system."""
        rows = rows[rows[:, e.EXTERNAL] != _NO_VALUE]
        for name in np.unique(rows[:, e.KEY_A]):
            own = rows[rows[:, e.KEY_A] == name]
            start, size = int(own[0, e.NAME_AT]), int(own[0, e.NAME_SIZE])
            text = data[start : start + size].tobytes().decode("utf-8", "replace").removeprefix("lk/external/")
            self.facts.external[text] = max(self.facts.external.get(text, -1), int(own[:, e.EXTERNAL].max()))

    def _sends(self, part: RecordColumns, at: Longs, events: Longs) -> None:
        sent = np.empty((int(events[:, e.SENDS].sum()), e.SEND_COLUMNS), np.int64)
        e.read_sends(part.data, events, len(self._cut_ends), sent)
        after = np.repeat(at > self._snapshot, events[:, e.SENDS])
        self.messages.send(sent[:, 0], message_keys(sent[:, 1], sent[:, 2]), after_snapshot=after)

    def _acknowledgements(self, part: RecordColumns, marks: Longs) -> None:
        ours = (marks[:, m.KIND] == Kind.ACK) & (marks[:, m.STAMP] == m.OURS) & (part.offsets > self._snapshot)
        rows = np.flatnonzero(ours)
        counts = np.empty(len(rows), np.int64)
        e.count_acks(part.data, part.spans, rows, counts)
        self._break_rows("V8", part.offsets[rows], counts < 0, "is an acknowledgement that cannot be read")
        rows, counts = rows[counts >= 0], counts[counts >= 0]
        found = np.empty((int(counts.sum()), 3), np.int64)
        e.read_acks(part.data, part.spans, rows, counts, found)
        senders = marks[rows][found[:, 0]][:, m.SOURCE_PARTITION]
        self.messages.acknowledge(senders, message_keys(found[:, 1], found[:, 2]))

    def _break_rows(self, rule: str, offsets: Longs, wrong: Flags, what: str) -> None:
        bad = np.flatnonzero(wrong)
        if len(bad):
            names = (f"partition {self.facts.partition}: the record at {offsets[row]} {what}" for row in bad[:20])
            self.facts.violations.add(rule, *names, count=len(bad))

    def _break(self, rule: str, what: str) -> None:
        self.facts.violations.add(rule, f"partition {self.facts.partition}: {what}")


def _floors(tables: CutTables) -> tuple[Longs, Longs]:
    """By partition and position, sorted, the id from there on; a command at a create's own position is before it."""
    rows = [(claim.partition << int(_PARTITION_SHIFT), 0) for claim in tables.claims]
    for claim in tables.claims:
        first = claim.partition << int(_PARTITION_SHIFT)
        rows += [(first + position + 1, found) for found, position in claim.checkpoints]
    found = np.array(sorted(rows), np.int64).reshape(-1, 2)
    return found[:, 0] - 1, found[:, 1]
