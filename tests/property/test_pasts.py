"""Random pasts of one log: no backup holds two of them without saying that it may, and no gap is a false one.

Rollbacks to any earlier moment, restarts in any pattern, compaction on either side, retention, batches over the
archived end, runs that are killed and resumed; each of them also in the middle of a backup.
"""

import os
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from logkeep.kafka.backup.continuity.past_check import JudgedPasts
from tests.property.untimed import many
from tests.support.kafka.pasts_model import TOPIC, WIDTH, Broker, ModelArchive, ModelBackup, Write

SAME_CASES = "LOGKEEP_EXAMPLES" not in os.environ
"""New cases belong to the long runs: a failure there may be one of the model."""


class _World:
    """The model, and what happens to it."""

    def __init__(self, draw: st.DrawFn, *, compacts: bool, compares: bool = True) -> None:
        self._draw = draw
        self.archive = ModelArchive(is_compacted=compacts, compares=compares)
        self._disks: list[Broker] = [Broker()]
        self._states: list[Broker] = []
        """During the last backup."""
        self._uids = 0
        self._cleaned: set[int] = set()
        """By compaction, in a state during a backup."""
        self.doubtful: set[str] = set()
        """Histories of which a backup said that their past is not decided."""

    @property
    def broker(self) -> Broker:
        return self.archive.broker

    @broker.setter
    def broker(self, now: Broker) -> None:
        self.archive.broker = now

    def write(self) -> None:
        for _ in range(self._draw(st.integers(1, 3))):
            self._uids += 1
            self.broker = self.broker.written(
                self._uids, self._draw(st.integers(1, 3)), self._draw(st.sampled_from((-1, 4)))
            )

    def restart(self) -> None:
        self.broker = self.broker.restarted()

    def keep_disk(self) -> None:
        self._disks.append(self.broker)

    def put_back(self, *, during_backup: bool = False) -> None:
        """A disk copied from a stopped or from a running broker, started once or twice, or a clone of today's.

        Controllers do not go back while a backup runs: then the leader gets an epoch that it did not have before.
        """
        disk = self._draw(st.sampled_from(self._disks))
        disk = disk.without_tail(self._draw(st.integers(0, min(2, len(disk.writes)))))
        for _ in range(self._draw(st.integers(1, 2))):
            disk = disk.restarted()
        while during_backup and disk.epoch <= self.broker.epoch:
            disk = disk.restarted()
        self._disks.append(self.broker)
        self.broker = disk
        if self._draw(st.booleans()):
            self.write()

    def retain(self) -> None:
        self.broker = self.broker.retained(self._draw(st.integers(0, self.broker.end)))

    def compact(self) -> None:
        def keeps(write: Write) -> tuple[int, ...] | None:
            kept = tuple(n for n in write.left if self._draw(st.integers(0, 2)))
            stays: bool = bool(kept) or self._draw(st.booleans())
            return kept if stays else None

        if self.archive.is_compacted:
            self.broker = self.broker.compacted(keeps)

    def disturb(self) -> None:
        """Mostly nothing."""
        calm = [lambda: None] * 5
        others: list[Callable[[], None]] = [self.write, partial(self.put_back, during_backup=True), self.retain]
        self._draw(st.sampled_from([*calm, *others, self.compact]))()
        self._states.append(self.broker)

    def back_up(self) -> None:
        dies_after = self._draw(st.sampled_from((None, None, None, 1, 2)))
        self._states = [self.broker]
        made = self.archive.back_up(self.disturb, dies_after)
        if made is not None:
            self._check(made)

    def _check(self, backup: ModelBackup) -> None:
        history = backup.log.history
        note(f"{history} [{backup.start}, {backup.end}) of {backup.broker}")
        same_leader = len({state.epoch for state in [*self._states, backup.broker]}) == 1
        if not self.archive.is_compacted and same_leader:
            assert backup.judged == JudgedPasts(), "only compaction or a change of the leader leaves anything undecided"
        if backup.judged.undecided:
            self.doubtful.add(history)
        if history in self.doubtful:
            return
        states = [*self._states, backup.broker]
        self._cleaned |= {uid for state in states for uid in state.cleaned}
        faults = [self._fault(backup, state) for state in states]
        assert "" in faults, faults[-1]

    def _fault(self, backup: ModelBackup, broker: Broker) -> str:
        """Why a backup is not what the broker had in this state; a log without news is not read again."""
        seen = self.archive.seen(backup)
        if {uid for _, _, uids in seen for uid in uids} - broker.past:
            return "records of another past"
        places = {(base, last) for base, last, _ in seen}
        live = [w for w in broker.writes if w.base < backup.end and w.last >= backup.start]
        if not {(w.base, w.last) for w in live if w.uid not in self._cleaned} <= places:
            return "a batch of the broker is missing"
        served = [(max(w.base, broker.start), w.last) for w in live]
        false = [gap for gap in backup.gaps if any(first < gap.end and last >= gap.start for first, last in served)]
        return "a gap over records that the broker serves" if false else ""


def _live(world: _World, draw: st.DrawFn) -> None:
    steps = [world.write, world.keep_disk, world.put_back, world.restart, world.retain, world.compact, world.back_up]
    weights = [*steps, world.write, world.put_back, world.back_up, world.back_up]
    world.write()
    for step in draw(st.lists(st.sampled_from(weights), min_size=3, max_size=14)):
        step()
    world.back_up()


@settings(many, derandomize=SAME_CASES)
@given(st.data())
def test_no_backup_holds_two_pasts(data: st.DataObject) -> None:
    _live(_World(data.draw, compacts=False), data.draw)  # type: ignore[arg-type]  # the same signature


@settings(many, derandomize=SAME_CASES)
@given(st.data())
def test_where_compaction_works_it_says_what_it_cannot_know(data: st.DataObject) -> None:
    _live(_World(data.draw, compacts=True), data.draw)  # type: ignore[arg-type]  # the same signature


def _rolled_back(*, compares: bool) -> tuple[ModelArchive, ModelBackup]:
    """The disk of offset 1400 is put back after a backup up to 2800, and written to beyond that."""
    archive = ModelArchive(compares=compares)
    disk = archive.broker.written(1, 2, -1)
    archive.broker = disk.restarted().written(2, 2, -1)
    assert archive.back_up(lambda: None) is not None
    archive.broker = disk.restarted().written(3, 2, -1).written(4, 2, -1)
    made = archive.back_up(lambda: None)
    assert made is not None
    return archive, made


def test_without_the_comparison_the_model_shows_the_splice() -> None:
    archive, made = _rolled_back(compares=False)
    assert [uids for _, _, uids in archive.seen(made)] == [{1}, {2}, {4}]
    archive, made = _rolled_back(compares=True)
    assert [uids for _, _, uids in archive.seen(made)] == [{1}, {3}, {4}]
    assert (made.start, made.end, made.gaps) == (0, 6 * WIDTH, ())


@pytest.mark.parametrize("records", [3, 4])
def test_a_disk_put_back_after_retention_emptied_the_log_during_its_first_copy(records: int) -> None:
    """Nothing of the log is archived, so no batch can be compared: its start went back."""
    archive = ModelArchive()
    archive.broker = archive.broker.written(1, 3, -1)

    def empty() -> None:
        archive.broker = archive.broker.retained(3 * WIDTH)

    made = archive.back_up(empty)
    assert made is not None
    assert (made.end, made.rows) == (3 * WIDTH, ())
    archive.broker = Broker().restarted().written(2, records, -1)
    made = archive.back_up(lambda: None)
    assert made is not None
    assert (made.log.history, made.gaps) == (f"{TOPIC.hex}-1", ())
    assert archive.seen(made) == [(0, records * WIDTH - 1, {2})]
