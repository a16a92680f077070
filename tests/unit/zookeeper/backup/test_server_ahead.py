"""A server whose word lies in a later epoch than the files that are said to be its own: that is told every night."""

from pathlib import Path

import pytest

from tests.support.zookeeper.handmade_directories import MadeServer, bundled
from tests.support.zookeeper.repositories import archived, new_place, newest, zxids

FIRST, THIRD = 1 << 32, 3 << 32


@pytest.fixture
def server(tmp_path: Path) -> MadeServer:
    """Its files end in epoch 1."""
    made = MadeServer(tmp_path / "server", zxid=FIRST + 6, mode="follower")
    made.snapshot(FIRST)
    made.log(range(FIRST + 1, FIRST + 7))
    return made


@pytest.mark.parametrize("mode", ["follower", "standalone"])
def test_files_that_stand_still_while_the_server_goes_on_are_behind_it(server: MadeServer, mode: str) -> None:
    place = new_place()
    server.mode = mode
    for night in range(1, 4):
        server.zxid = THIRD + 500 * night
        done = archived(place, server)
        assert (done.exit_code, [f.code for f in done.findings]) == (21, ["behind-the-server"])
        (finding,) = done.findings
        assert f"the server is in epoch 3 and has processed {server.zxid:#x}" in finding.what
        assert "its files end in epoch 1, at 0x100000006" in finding.what
        assert "--data-dir" in finding.remedy
        assert "--zk-host" in finding.remedy
    assert zxids(newest(place)) == [(FIRST + 1, FIRST + 6)]


def test_a_bundle_tells_it_too(server: MadeServer, tmp_path: Path) -> None:
    server.zxid = THIRD + 1
    _, done = bundled(server, tmp_path / "out")
    assert (done.exit_code, [f.code for f in done.findings]) == (21, ["behind-the-server"])


def test_an_epoch_in_which_nothing_was_written_is_not_ahead(server: MadeServer) -> None:
    place = new_place()
    for epoch in (1, 2, 3):
        server.zxid = epoch << 32 if epoch > 1 else FIRST + 6
        done = archived(place, server)
        assert (done.exit_code, done.findings) == (0, [])


def test_a_snapshot_that_the_leader_sent_is_as_far_as_the_server(server: MadeServer) -> None:
    """The log ends in an earlier epoch, and goes on with the next write: also when the snapshot is archived already."""
    place = new_place()
    server.snapshot(THIRD + 5)
    server.zxid = THIRD + 5
    for _ in range(2):
        done = archived(place, server)
        assert (done.exit_code, [f.code for f in done.findings]) == (0, [])
    server.zxid = THIRD + 6
    done = archived(place, server)
    assert (done.exit_code, [f.code for f in done.findings]) == (21, ["behind-the-server"])
    assert "0x300000006, its logs end at 0x100000006" in done.findings[0].what
