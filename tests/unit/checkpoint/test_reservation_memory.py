"""Reservations live in memory only."""

from pathlib import Path

from logkeep.checkpoint.snapshots import SnapshotStore


def test_r55_a_reservation_is_gone_after_a_restart(tmp_path: Path) -> None:
    before = SnapshotStore(tmp_path)
    assert before.reserve(None, 7) is not None
    assert before.reserved_from == 7
    assert SnapshotStore(tmp_path).reserved_from is None
