"""What is packed is unpacked once for a repair, however many parts it is put together of, and nothing stays behind."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import pytest

from logkeep.errors import BackupFailed
from logkeep.zookeeper.model.archived import ArchivedLog
from logkeep.zookeeper.model.packing import unpacked_stream
from logkeep.zookeeper.repair import run as repairing
from logkeep.zookeeper.repair.donors import Views, disputed_in
from logkeep.zookeeper.repair.log_cache import MOST_COPIES, LogCache
from logkeep.zookeeper.repair.plan import Donor, RepairPlan
from logkeep.zookeeper.repair.run import plan_backup_repair, repair
from tests.support.zookeeper.handmade_history import MemorySink, MemoryView, Past

PAST = Past(range(1, 101))


class Packed(MemoryView):
    """Its logs can only be read from their first byte on."""

    unpacked = 0

    def salvage(self, kept: ArchivedLog) -> BinaryIO:
        self.unpacked += 1
        return unpacked_stream(iter([memoryview(self.objects[kept])]))


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def holding(*zxids: int) -> Packed:
    view = Packed()
    view.add_log([PAST.records[zxid] for zxid in zxids])
    return view


def damaged(view: Packed, *zxids: int) -> Packed:
    (log,) = view.logs
    content = bytearray(view.objects[log])
    for zxid in zxids:
        content[bytes(content).index(PAST.records[zxid]) + 40] ^= 1
    view.objects[log] = bytes(content)
    return view


def test_it_is_unpacked_once(scratch: Path) -> None:
    """Also a donor that gives every third record, and is damaged itself."""
    view, donor = damaged(holding(*PAST.zxids), *range(2, 99, 3)), damaged(holding(*PAST.zxids), *range(3, 99, 3))
    another, sink = holding(*PAST.zxids[50:]), MemorySink(view)
    done = repair(view, sink, earlier=[donor, another])
    assert [(plan.whole, len(plan.spliced)) for plan in done.repairs] == [(True, 33)]
    assert list(sink.made.values()) == list(holding(*PAST.zxids).objects.values())
    assert (view.unpacked, donor.unpacked, another.unpacked) == (1, 1, 1)
    assert list(scratch.iterdir()) == []


def test_few_lie_on_the_disk_at_a_time(scratch: Path) -> None:
    views = [holding(*PAST.zxids[: 10 * number]) for number in range(1, 8)]
    with LogCache() as reading:
        for _ in range(2):
            for view in views:
                ((log, content),) = view.objects.items()
                assert isinstance(log, ArchivedLog)
                with reading.open(view, log) as one, reading.open(view, log) as two:
                    assert (one.read(), two.read()) == (content, content)
                assert sum(path.is_file() for path in scratch.rglob("*")) <= MOST_COPIES
    assert [view.unpacked for view in views] == [2] * 7
    assert list(scratch.iterdir()) == []


def test_parts_are_found_whatever_was_asked_before() -> None:
    view = damaged(holding(*PAST.zxids), 40)
    (log,) = view.logs
    with LogCache() as reading:
        assert [(each.first_zxid, each.last_zxid) for each in reading.stretches(view, log)] == [(1, 39), (41, 100)]
        for first, last in [(1, 3), (9, 12), (13, 13), (50, 60), (5, 7), (61, 100), (41, 41), (39, 39)]:
            given = bytearray()
            reading.give(view, log, first, last, given.extend)
            assert given == b"".join(PAST.records[zxid] for zxid in range(first, last + 1))


def test_what_a_hash_proves_is_not_compared_among_all_holders(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = list[RepairPlan]()

    def noted(plan: RepairPlan, views: Views, donors: Sequence[Donor]) -> Iterator[int]:
        compared.append(plan)
        return disputed_in(plan, views, donors)

    monkeypatch.setattr(repairing, "disputed_in", noted)
    view, others = damaged(holding(*PAST.zxids), 5, 50), [holding(*PAST.zxids) for _ in range(3)]
    assert [plan.whole for plan in plan_backup_repair(view, earlier=others).repairs] == [True]
    assert compared == []


def test_no_room_to_unpack_is_told_with_a_remedy(scratch: Path) -> None:
    """The device that is always full stands for the disk."""
    view = damaged(holding(*PAST.zxids), 50)
    (log,) = view.logs
    with LogCache() as reading:
        reading.open(view, log).close()
        (directory,) = scratch.iterdir()
        (directory / "2").symlink_to("/dev/full")
        with pytest.raises(BackupFailed, match="No space left") as told:
            reading.open(view, another(view)).close()
    assert "TMPDIR" in str(told.value.remedy)
    assert list(scratch.iterdir()) == []


def another(view: Packed) -> ArchivedLog:
    return view.add_log([PAST.records[zxid] for zxid in PAST.zxids], member="b")


def test_no_place_at_all_to_unpack_is_not_taken_for_a_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "gettempdir", nowhere)
    monkeypatch.setattr(tempfile, "_get_default_tempdir", nowhere)
    with pytest.raises(BackupFailed, match="temporary files"):
        plan_backup_repair(damaged(holding(*PAST.zxids), 50), earlier=[holding(*PAST.zxids)])
