"""Where a salvage goes on after earlier backups, and what it calls proven."""

from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from logkeep.kafka.backup.continuity.past_check import PastVerdict
from logkeep.kafka.client.fetch import DivergingEpoch
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.disks.scan_results import ReplicaScan
from logkeep.kafka.logs.leader_epochs import EpochStart
from logkeep.kafka.logs.lost_offset import Cause
from logkeep.kafka.record.documents import PartitionRecord
from logkeep.kafka.salvage.decide import FoundLog, decide, epoch_end
from tests.support.kafka.broker_disks import ID, add_log, flip, made_disk, run_of
from tests.support.kafka.handmade_batches import Batch
from tests.support.kafka.salvage_steps import codes, salvaged, told
from tests.support.kafka.slow_records import Slow
from tests.support.kafka.whole_backups import new_place

LOG = TopicPartition("orders", 0)


def _scan(end: int, *epochs: tuple[int, int], start: int = 0) -> ReplicaScan:
    known = tuple(EpochStart(epoch, offset) for epoch, offset in epochs)
    return ReplicaScan(directory="d", node=1, start=start, end=end, epochs=known)


def _found(scan: ReplicaScan, watermark: int = -1, replicas: int = 0) -> FoundLog:
    return FoundLog(LOG, ID, (scan,), watermark, replicas)


def _known(end: int, epoch: int, start: int = 0) -> PartitionRecord:
    return PartitionRecord("orders", 0, ID.hex, start, end, end, epoch)


@pytest.mark.parametrize(
    ("asked", "answer"),
    [(0, (0, 10)), (1, (0, 10)), (2, (2, 30)), (5, (5, 50)), (6, (-1, -1)), (-1, (-1, -1))],
)
def test_epochs_end_as_brokers_say(asked: int, answer: tuple[int, int]) -> None:
    assert epoch_end(_scan(50, (0, 0), (2, 10), (5, 30)), asked) == DivergingEpoch(*answer)


def test_a_log_goes_on() -> None:
    decided = decide(_found(_scan(50, (0, 0), (2, 10))), _known(20, 2))
    assert (decided.cause, decided.bounds.high_watermark, decided.proven_end) == (Cause.NONE, 50, 20)


@pytest.mark.parametrize("epochs", [((0, 0), (3, 15)), ((0, 0),)])
def test_another_past_is_a_new_history(epochs: tuple[tuple[int, int], ...]) -> None:
    assert decide(_found(_scan(50, *epochs)), _known(20, 2)).cause.new_history


def test_a_disk_that_has_less_adds_nothing() -> None:
    decided = decide(_found(_scan(15, (0, 0))), _known(20, 2, start=5))
    assert (decided.ahead, decided.bounds.start, decided.bounds.high_watermark) == (True, 5, 20)
    assert [f.code for f in decided.findings] == ["archive-ahead"]


def test_a_log_start_never_goes_back() -> None:
    assert decide(_found(_scan(50, (0, 0))), _known(20, 0, start=7)).bounds.start == 7


@pytest.mark.parametrize(
    ("watermark", "replicas", "proven"), [(-1, 0, 0), (30, 0, 30), (30, 3, 30), (-1, 1, 50), (70, 3, 50)]
)
def test_what_is_proven(watermark: int, replicas: int, proven: int) -> None:
    decided = decide(_found(_scan(50, (0, 0)), watermark, replicas), None)
    assert decided.proven_end == proven
    assert ("unproven-tail" in {f.code for f in decided.findings}) == (proven < 50)
    assert ("lost-tail" in {f.code for f in decided.findings}) == (watermark > 50)


def _disk(root: Path, name: str, end: int, epoch: int = 0, watermark: int = 0, topic: UUID = ID) -> Path:
    disk = made_disk(root / name, watermarks={LOG: watermark or end})
    add_log(disk, "orders-0", [run_of(0, 50), run_of(50, end, epoch=epoch)], topic)
    return disk


def test_one_salvage_after_the_other(tmp_path: Path) -> None:
    """The disk of a broker that had more, then one with another past, then one with less."""
    place = new_place(tmp_path / "repository")
    first = salvaged(place, [_disk(tmp_path, "first", 80)])[1]
    second = salvaged(place, [_disk(tmp_path, "second", 100)])[1]
    assert [(r.wanted.lo, r.wanted.hi) for u in second.plan.units for r in u.ranges] == [(80, 100)]
    third = salvaged(place, [_disk(tmp_path, "third", 90, epoch=4)])[1]
    assert "starts a new history" in told(third, "new-history")[0]
    archive, fourth = salvaged(place, [_disk(tmp_path, "fourth", 60, epoch=3)])
    assert codes(fourth) >= {"archive-ahead"}
    ends = []
    for done in (first, second, third, fourth):
        assert done.entry is not None
        archive.check(done.entry.id)
        ends.append((archive.cut(done.entry.id, "orders").end, archive.cut(done.entry.id, "orders").log.history))
    assert ends == [(80, ID.hex), (100, ID.hex), (90, f"{ID.hex}-1"), (90, f"{ID.hex}-1")]
    expected = [b.encode() for b in [*run_of(0, 50), *run_of(50, 90, epoch=4)]]
    assert fourth.entry is not None
    assert archive.batches(fourth.entry.id, "orders") == expected


def test_what_is_on_other_disks_stays_in_the_backup(tmp_path: Path) -> None:
    place = new_place(tmp_path / "repository")
    both = _disk(tmp_path, "both", 80)
    add_log(both, "payments-0", [run_of(0, 20)], UUID(int=9))
    salvaged(place, [both])
    archive, done = salvaged(place, [_disk(tmp_path, "one", 90)])
    assert done.entry is not None
    archive.check(done.entry.id)
    assert {log: cut.end for log, cut in archive.cuts(done.entry.id).items()} == {LOG: 90, ("payments", 0): 20}
    assert {t.name for t in archive.record(done.entry.id).topics} == {"orders", "payments"}
    assert {r.topic for r in archive.record(done.entry.id).logs} == {"orders", "payments"}


def test_another_past_is_a_new_history_also_on_a_disk_that_is_shorter() -> None:
    """By its end and epoch alone such a disk would look like one that lagged behind."""
    older = decide(_found(_scan(15, (0, 0))), _known(20, 2), PastVerdict.OTHER)
    assert older.ahead, "a replica with an older leader epoch may have kept what later leaders did not have"
    assert [f.code for f in older.findings] == ["archive-ahead", "past-undecided"]
    for end in (15, 20, 50):
        found, known = _found(_scan(end, (0, 0), (2, 10))), _known(20, 2)
        decided = decide(found, known, PastVerdict.OTHER)
        assert decided.cause.new_history
        assert not decided.ahead
        assert (decided.bounds.start, decided.bounds.high_watermark) == (0, end)
        for past in (PastVerdict.SAME, PastVerdict.REMOVED):
            assert decide(found, known, past) == decide(found, known)


def test_a_past_that_is_not_known_is_reported_and_the_log_is_continued() -> None:
    decided = decide(_found(_scan(50, (0, 0), (2, 10))), _known(20, 2), PastVerdict.UNDECIDED)
    assert decided.cause is Cause.NONE
    assert [f.code for f in decided.findings if f.code != "unproven-tail"] == ["past-undecided"]


def test_a_damaged_disk_does_not_look_like_another_past(tmp_path: Path) -> None:
    """The batch that both should have is the one that cannot be read."""
    place, first = new_place(tmp_path / "repository"), made_disk(tmp_path / "first", watermarks={LOG: 40})
    add_log(first, "orders-0", [run_of(0, 40)])
    salvaged(place, [first])
    later = made_disk(tmp_path / "later", watermarks={LOG: 60})
    log = add_log(later, "orders-0", [run_of(0, 60)])
    flip(log / f"{0:020d}.log", 7 * 96 + 90)
    archive, done = salvaged(place, [later])
    assert "new-history" not in codes(done)
    assert "past-undecided" in codes(done)
    assert done.entry is not None
    assert archive.cut(done.entry.id, "orders").end == 60


def _records(batches: list[Batch], value: bytes) -> list[Batch]:
    """With real records: without a metadata log a topic may be a compacted one, and records decide."""
    return [replace(b, payload=b"".join(Slow(n, 0, b"k", value).encode() for n in range(b.count))) for b in batches]


def test_disks_of_two_pasts(tmp_path: Path) -> None:
    """The same offsets and epochs, other records from offset 20 on: longer than the archive, as long, and shorter."""
    for end in (30, 40, 60):
        place, first = new_place(tmp_path / f"repository{end}"), made_disk(tmp_path / f"first{end}")
        add_log(first, "orders-0", [_records(run_of(0, 40), b"A")])
        before = salvaged(place, [first])[1]
        other = made_disk(tmp_path / f"other{end}")
        add_log(other, "orders-0", [[*_records(run_of(0, 20), b"A"), *_records(run_of(20, end), b"B")]])
        archive, done = salvaged(place, [other])
        assert done.entry is not None
        assert before.entry is not None
        assert "new-history" in codes(done), end
        cut = archive.cut(done.entry.id, "orders")
        assert (cut.log.history, cut.start, cut.end) == (f"{ID.hex}-1", 0, end)
        assert salvaged(place, [other])[1].offsets == 0, "now it continues"
