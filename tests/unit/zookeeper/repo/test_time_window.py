"""A backup that is to reach back only so far, when the pieces before it were merged: the same as if they were not."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from logkeep.formats.zookeeper.transactions import SetData, Transaction
from logkeep.model.ids import BackupId
from logkeep.model.time import random_token, utc_now
from logkeep.repository.backups.verdicts import GOOD
from logkeep.repository.chain.write_session import writing
from logkeep.repository.upkeep.prune import delete
from logkeep.store.memory import MemoryStore
from tests.support.zookeeper.encoding import LOG_HEADER, body, record
from tests.support.zookeeper.handmade_directories import MIB, MadeServer
from tests.support.zookeeper.merged_backups import optimize, records_of
from tests.support.zookeeper.repaired_backups import ids, verified
from tests.support.zookeeper.repositories import archived, bytes_of, new_place, newest, zxids

BEGAN = datetime(2023, 1, 1, tzinfo=UTC)


def dated(zxid: int) -> bytes:
    """Of one transaction a day."""
    time_ms = int((BEGAN + timedelta(days=zxid)).timestamp() * 1000)
    return record(body(Transaction(7, 1, zxid, time_ms, 5, SetData(b"/zookeeper", b"data", 1), None)))


class Daily:
    """Backups of a server, one after each transaction; it takes a snapshot every other day."""

    def __init__(self, root: Path) -> None:
        self.place, self.server = new_place(), MadeServer(root, zxid=0)
        self.server.snapshot(0)

    def backup(self, *days: int, since: float | None = None) -> None:
        """`since`: the day that it must reach back to."""
        for day in days:
            records = b"".join(map(dated, range(1, day + 1)))
            (self.server.log_dir / "log.1").write_bytes(LOG_HEADER + records + bytes(MIB))
            if day % 2 == 0:
                self.server.snapshot(day)
            self.server.zxid = day
            window = None if since is None else utc_now() - BEGAN - timedelta(days=since)
            archived(self.place, self.server, window=window)

    def forget_snapshots(self, *days: int) -> None:
        """As the server's own purge does."""
        for day in days:
            (self.server.snapshot_dir / f"snapshot.{day:x}").unlink()


@pytest.fixture
def daily(tmp_path: Path) -> Daily:
    """A week; the server has only its newest snapshot by now."""
    made = Daily(tmp_path / "server")
    made.backup(*range(1, 8))
    made.forget_snapshots(0, 2, 4)
    return made


@pytest.mark.parametrize("merged", [False, True])
@pytest.mark.parametrize(("since", "snapshots"), [(4.5, [4, 6, 8]), (2.5, [2, 4, 6, 8]), (5.5, [6, 8]), (6.5, [6, 8])])
def test_snapshots_before_the_window_go_whether_logs_were_merged_or_not(
    daily: Daily, merged: bool, since: float, snapshots: list[int]
) -> None:
    if merged:
        assert optimize(daily.place).objects_after == 1
    daily.backup(8, since=since)
    view = newest(daily.place)
    assert [s.zxid for s in view.snapshots] == snapshots
    assert zxids(view)[-1][1] == 8
    assert zxids(view)[0][0] <= snapshots[0] + 1
    assert merged == (zxids(view)[0] == (1, 7)), "an object is kept as a whole"
    assert verified(daily.place, ids(daily.place)[-1]).document.verdict == GOOD


def test_pieces_of_an_object_that_no_backup_has_all_of_stay_together(daily: Daily) -> None:
    """The backup that had all of the merged object was deleted: the next one has pieces of it."""
    optimize(daily.place)
    with writing(daily.place, "delete", utc_now, random_token) as session:
        delete(session, [BackupId(ids(daily.place)[-1])], "test")
    daily.backup(8, since=3.5)
    view = newest(daily.place)
    assert [s.zxid for s in view.snapshots] == [4, 6, 8]
    assert records_of(view) == {("zk1", "log.1"): b"".join(map(dated, range(1, 9)))}
    assert verified(daily.place, ids(daily.place)[-1]).document.verdict == GOOD
    before = bytes_of(view)
    daily.backup(9, since=3.5)
    assert bytes_of(newest(daily.place)).items() >= before.items()


class Counting(MemoryStore):
    """How often archived logs were read."""

    reads = 0

    def get_range(self, name: str, start: int, length: int) -> bytes:
        self.reads += "/txnlogs/" in name
        return super().get_range(name, start, length)


def test_a_backup_does_not_read_the_archive_for_a_window_that_changes_nothing(tmp_path: Path) -> None:
    """The window begins in the midst of a log, and no snapshot ends there."""
    store, grown = Counting(), Daily(tmp_path / "server")
    grown.place = new_place(store)
    grown.backup(1)
    grown.backup(7)
    store.reads = 0
    grown.backup(9, since=4.5)
    assert store.reads == 0
    assert zxids(newest(grown.place)) == [(1, 1), (2, 7), (8, 9)]
