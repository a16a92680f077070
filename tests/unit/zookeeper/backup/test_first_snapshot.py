"""Before 3.5 a server has no snapshot until it has processed many transactions: its logs from the first one on do."""

from pathlib import Path

import pytest

from tests.support.zookeeper.handmade_directories import MadeServer
from tests.support.zookeeper.repositories import archived, archived_all, new_place, newest, zxids

EPOCH = 1 << 32


@pytest.mark.parametrize(("mode", "before"), [("standalone", 0), ("leader", EPOCH)])
def test_later_backups_rest_on_the_logs_too(mode: str, before: int, tmp_path: Path) -> None:
    """The first transaction of an ensemble is in epoch 1."""
    place, server = new_place(), MadeServer(tmp_path / "server", mode=mode)
    for last in (3, 6, 9):
        server.zxid = before + last
        server.log(range(before + 1, before + last + 1))
        done = archived(place, server)
        assert (done.exit_code, list(done.findings)) == (0, [])
    assert zxids(newest(place)) == [(before + first, before + first + 2) for first in (1, 4, 7)]


def test_a_first_snapshot_that_is_being_written_is_no_damage(tmp_path: Path) -> None:
    place, server = new_place(), MadeServer(tmp_path / "server", zxid=6)
    server.log([1, 2, 3, 4, 5, 6])
    archived(place, server)
    path = server.snapshot(5)
    path.write_bytes(path.read_bytes()[:-10])
    done = archived(place, server)
    assert (done.exit_code, [finding.code for finding in done.findings]) == (0, ["snapshot-unfinished"])
    assert done.gathered.rounds == 1, "nothing needs it, so the run does not wait for it"


def test_a_member_without_a_snapshot_and_its_first_logs_is_reported(tmp_path: Path) -> None:
    whole, purged = (MadeServer(tmp_path / name, zxid=6, mode="follower") for name in ("whole", "purged"))
    whole.snapshot(0)
    whole.log([1, 2, 3, 4, 5, 6])
    purged.log([4, 5, 6])
    done = archived_all(new_place(), [whole, purged])
    assert done.exit_code == 21
    assert [(f.code, f.where) for f in done.findings] == [("no-snapshot", "member zk2")]
