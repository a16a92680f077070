"""Segment files as a broker must find them, for logs of every awkward shape."""

import os
import pickle
from pathlib import Path

import pytest

from logkeep.formats.kafka.batches import walk
from logkeep.formats.kafka.restore.synthetic_batches import abort_marker
from logkeep.kafka.offline_restore.ownership_note import NOTE
from logkeep.kafka.offline_restore.plan import plan_offline_restore, unit_of
from logkeep.kafka.offline_restore.values import LogEnd, OfflineReport
from logkeep.repository.chain.commits import read_chain
from tests.support.kafka.broker_disks import flip
from tests.support.kafka.handmade_batches import Batch, dense
from tests.support.kafka.offline_restore import (
    METADATA,
    archived_as,
    backed_up,
    labelled,
    logs_in,
    made_target,
    offline,
    tree,
    wished,
)
from tests.support.kafka.slow_records import Slow, batch_of


def _dense(start: int, end: int, **changes: int) -> list[bytes]:
    return [dense(base, min(5, end - base), **changes).encode() for base in range(start, end, 5)]


def _only(report: OfflineReport) -> str:
    (log,) = report.logs
    assert log.problem == ""
    return log.directory


def test_batches_are_those_of_the_archive(tmp_path: Path) -> None:
    batches = _dense(0, 40, epoch=57, producer=12) + _dense(40, 60)
    backed = backed_up(tmp_path, {"orders-0": batches})
    root = made_target(tmp_path / "data", ["orders-0"])
    metadata = (root / "orders-0" / METADATA).read_bytes()
    report = offline(backed.place, backed.backup, [root])
    assert report.good
    assert logs_in(root / "orders-0") == {"00000000000000000000.log": b"".join(map(archived_as, batches))}
    assert (root / "orders-0" / METADATA).read_bytes() == metadata
    assert sorted(p.name for p in (root / "orders-0").iterdir()) == ["00000000000000000000.log", NOTE, METADATA]
    (log,) = report.logs
    assert (log.start, log.end, log.records, log.markers) == (0, 60, 60, 0)


def test_several_files_by_size_and_the_first_by_the_log_start(tmp_path: Path) -> None:
    batches = _dense(300, 400)
    backed = backed_up(tmp_path, {"orders-0": batches})
    root = made_target(tmp_path / "data", ["orders-0"])
    report = offline(backed.place, backed.backup, [root], segment_bytes=3 * len(batches[0]))
    files = logs_in(Path(_only(report)))
    assert len(files) == 7
    assert b"".join(files.values()) == b"".join(map(archived_as, batches))
    for name, data in files.items():
        assert int(name[:20]) == int(walk(data).batches.base_offsets[0])
    assert min(files) == "00000000000000000300.log"


def test_a_log_that_begins_inside_a_batch_keeps_it_whole(tmp_path: Path) -> None:
    batches = _dense(0, 40)
    source = tmp_path / "made"
    source.mkdir()
    backed = backed_up(source, {"orders-0": batches})
    checkpoint = source / "source" / "log-start-offset-checkpoint"
    checkpoint.write_text("0\n1\norders 0 13\n")
    from tests.support.kafka.salvage_steps import salvaged  # noqa: PLC0415 - a second backup, whose log start has moved

    later = salvaged(backed.place, [source / "source"])[1]
    assert later.entry is not None
    root = made_target(tmp_path / "data", ["orders-0"])
    report = offline(backed.place, later.entry.id, [root])
    files = logs_in(Path(_only(report)))
    assert files == {"00000000000000000013.log": b"".join(map(archived_as, batches[2:]))}


def _transactions() -> list[bytes]:
    """Producer 7 commits nothing and stays open; producer 8 is open too; producer 9 was aborted."""
    records = [Slow(0, value=b"a"), Slow(1, value=b"b")]
    return [
        batch_of(0, records, attributes=0x10, producer=7, max_time_ms=5000),
        batch_of(2, records, attributes=0x10, producer=9, max_time_ms=9000),
        batch_of(4, records, attributes=0x10, producer=8, max_time_ms=6000),
        abort_marker(6, 9, 0, 7000),
        batch_of(7, records, max_time_ms=6500),
    ]


def test_open_transactions_are_aborted_by_markers_behind_the_end(tmp_path: Path) -> None:
    batches = _transactions()
    backed = backed_up(tmp_path, {"orders-0": batches})
    root = made_target(tmp_path / "data", ["orders-0"])
    report = offline(backed.place, backed.backup, [root])
    (data,) = logs_in(Path(_only(report))).values()
    markers = [archived_as(abort_marker(9, 7, -1, 9000)), archived_as(abort_marker(10, 8, -1, 9000))]
    assert data == b"".join([*map(archived_as, batches), *markers])
    (log,) = report.logs
    assert (log.end, log.markers) == (11, 2)
    assert [f.code for f in report.findings if f.where == "orders-0"] == ["transactions-aborted"]


def test_an_earlier_end_at_a_border_and_inside_a_batch(tmp_path: Path) -> None:
    records = [Slow(d, d * 10, b"k", b"value %d" % d) for d in range(5)]
    batches = [batch_of(base, records, base_time_ms=1000, max_time_ms=1040) for base in range(0, 50, 5)]
    backed = backed_up(tmp_path, {"orders-0": batches})
    root = made_target(tmp_path / "data", ["orders-0"])
    report = offline(backed.place, backed.backup, [root], until_offsets=("orders:0=20",))
    assert logs_in(Path(_only(report)))["00000000000000000000.log"] == b"".join(map(archived_as, batches[:4]))
    report = offline(backed.place, backed.backup, [root], ends=(LogEnd("orders", 0, 23),), replace=True)
    (data,) = logs_in(Path(_only(report))).values()
    cut = batch_of(20, records[:3], base_time_ms=1000, max_time_ms=1020)
    assert data == b"".join([*map(archived_as, batches[:4]), archived_as(cut)])
    (log,) = report.logs
    assert (log.end, log.cut_batch, log.records) == (23, True, 23)


def test_a_log_ends_where_it_ended_though_compaction_left_nothing_there(tmp_path: Path) -> None:
    batches = _dense(0, 10) + _dense(30, 40)
    backed = backed_up(tmp_path, {"orders-0": batches})
    root = made_target(tmp_path / "data", ["orders-0"])
    report = offline(backed.place, backed.backup, [root], ends=(LogEnd("orders", 0, 25),))
    (data,) = logs_in(Path(_only(report))).values()
    assert data.startswith(b"".join(map(archived_as, batches[:2])))
    last = walk(data).batches[-1:]
    assert (int(last.base_offsets[0]), int(last.last_offsets[0]), int(last.headers["records"][0])) == (10, 24, 0)
    assert report.logs[0].emptied == 15


def test_a_log_without_records_begins_where_it_began(tmp_path: Path) -> None:
    backed = backed_up(tmp_path, {"orders-0": _dense(70, 80), "empty-0": []})
    root = made_target(tmp_path / "data", ["orders-0", "empty-0"])
    report = offline(backed.place, backed.backup, [root], ends=(LogEnd("orders", 0, 70),))
    assert report.good
    assert logs_in(root / "orders-0") == {"00000000000000000070.log": b""}
    assert logs_in(root / "empty-0") == {"00000000000000000000.log": b""}


def test_ids_that_were_moved_once_are_moved_on(tmp_path: Path) -> None:
    batches = [Batch(0, producer=5).encode(), Batch(1, producer=2**62 + 5).encode()]
    backed = backed_up(tmp_path, {"orders-0": batches})
    root = made_target(tmp_path / "data", ["orders-0"])
    (data,) = logs_in(Path(_only(offline(backed.place, backed.backup, [root])))).values()
    assert data == labelled(batches[0], 2**62 + 5) + labelled(batches[1], 2**62 + 2**56 + 5)


def test_two_disks_and_two_brokers_get_the_same_bytes(tmp_path: Path) -> None:
    logs = {"orders-0": _transactions(), "orders-1": _dense(40, 60), "users-0": _dense(0, 20)}
    backed = backed_up(tmp_path, logs)
    disks = [made_target(tmp_path / "a", ["orders-0", "users-0"]), made_target(tmp_path / "b", ["orders-1"])]
    one = made_target(tmp_path / "other", list(logs))
    assert offline(backed.place, backed.backup, disks, segment_bytes=300).good
    assert offline(backed.place, backed.backup, [one], segment_bytes=300).good
    for name in logs:
        (where,) = [d / name for d in disks if (d / name).exists()]
        assert tree(where) == tree(one / name)


def test_names_partitions_and_a_rename(tmp_path: Path) -> None:
    logs = {"orders-0": _dense(0, 5), "orders-1": _dense(0, 10), "users-0": _dense(0, 20)}
    backed = backed_up(tmp_path, logs)
    root = made_target(tmp_path / "data", ["sales-1", "users-0"])
    wish = {"include": ("ord.*",), "partitions": ("1",), "renames": ("orders=sales",)}
    report = offline(backed.place, backed.backup, [root], **wish)
    assert [(log.topic, log.partition) for log in report.logs] == [("sales", 1)]
    assert logs_in(root / "sales-1")["00000000000000000000.log"] == b"".join(map(archived_as, logs["orders-1"]))
    assert logs_in(root / "users-0") == {"00000000000000000000.log": b""}


def test_owner_and_rights_are_those_of_the_broker(tmp_path: Path) -> None:
    backed = backed_up(tmp_path, {"orders-0": _dense(0, 10)})
    root = made_target(tmp_path / "data", ["orders-0"])
    (root / "orders-0").chmod(0o750)
    (root / "orders-0" / METADATA).chmod(0o640)
    if os.geteuid() == 0:
        for path in (root / "orders-0", *(root / "orders-0").iterdir()):
            os.chown(path, 1234, 1235)
    directory = Path(_only(offline(backed.place, backed.backup, [root])))
    expected = (1234, 1235) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
    for path in (directory, *directory.iterdir()):
        found = path.stat()
        assert (found.st_uid, found.st_gid) == expected, path
        assert found.st_mode & 0o777 == (0o750 if path == directory else 0o640), path


def test_run_again_proves_and_changes_nothing(tmp_path: Path) -> None:
    backed = backed_up(tmp_path, {"orders-0": _transactions()})
    root = made_target(tmp_path / "data", ["orders-0"])
    first = offline(backed.place, backed.backup, [root])
    before = {p: (p.stat().st_ino, p.stat().st_mtime_ns) for p in root.rglob("*")}
    second = offline(backed.place, backed.backup, [root])
    assert {p: (p.stat().st_ino, p.stat().st_mtime_ns) for p in root.rglob("*")} == before
    assert (second.logs[0].again, second.logs[0].files) == (True, first.logs[0].files)


@pytest.mark.parametrize("at", [5, 30, 70])
def test_a_file_that_rotted_is_seen_and_mended_when_told(tmp_path: Path, at: int) -> None:
    backed = backed_up(tmp_path, {"orders-0": _dense(0, 30, producer=3)})
    root = made_target(tmp_path / "data", ["orders-0"])
    offline(backed.place, backed.backup, [root])
    good = tree(root)
    flip(root / "orders-0" / "00000000000000000000.log", at)
    again = offline(backed.place, backed.backup, [root])
    assert not again.good
    assert [f.code for f in again.findings if f.where == "orders-0"] == ["not-restored"]
    assert "00000000000000000000.log" in again.logs[0].problem
    assert offline(backed.place, backed.backup, [root], replace=True).good
    assert tree(root) == good


def test_a_damaged_archive_leaves_the_directory_as_it_was(tmp_path: Path) -> None:
    backed = backed_up(tmp_path, {"orders-0": _dense(0, 30), "users-0": _dense(0, 30)})
    (stored,) = (tmp_path / "repository").rglob("topics/orders/**/*.log")
    stored.chmod(0o600)
    flip(stored, 90)
    root = made_target(tmp_path / "data", ["orders-0", "users-0"])
    before = tree(root / "orders-0")
    report = offline(backed.place, backed.backup, [root])
    assert {log.topic: bool(log.problem) for log in report.logs} == {"orders": True, "users": False}
    assert "CRC-32C" in next(log.problem for log in report.logs if log.problem)
    assert tree(root / "orders-0") == before
    assert not list(root.glob("*-delete"))


def test_units_travel_between_processes(tmp_path: Path) -> None:
    backed = backed_up(tmp_path, {"orders-0": _dense(0, 30)})
    root = made_target(tmp_path / "data", ["orders-0"])
    wish = wished(backed.backup, [root])
    entry = read_chain(backed.place).entry(backed.backup)
    assert entry is not None
    (planned,) = plan_offline_restore(backed.place, entry, wish).plan.logs
    unit = unit_of(planned, backed.place, wish)
    assert pickle.loads(pickle.dumps(unit)).planned == planned  # noqa: S301 - our own bytes
