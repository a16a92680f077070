"""A server that catches up with others may log once more what it has: nothing is lost by it, and nothing kept twice.

Members of 3.5 to 3.8 were seen to do so after the death of a leader, and observers that left and joined again.
"""

from pathlib import Path

import pytest

from logkeep.repository.verdicts import GOOD
from tests.zookeeper.archives import archived, new_place, newest, zxids
from tests.zookeeper.directories import MadeServer, bundled, txn
from tests.zookeeper.mended import ids, verified


@pytest.fixture
def server(tmp_path: Path) -> MadeServer:
    made = MadeServer(tmp_path / "server")
    made.snapshot(0, digest=False)
    return made


def runs(server: MadeServer, out: Path, *logs: list[int]) -> tuple[list[tuple[int, int]], set[str], int]:
    """What is kept of such logs, what is told of them, and the exit code."""
    for log in logs:
        server.log(log)
    server.zxid = max(zxid for log in logs for zxid in log)
    view, done = bundled(server, out)
    return [(log.first, log.last) for log in view.logs], {f.code for f in done.findings}, done.exit_code


@pytest.mark.parametrize(
    ("logs", "kept"),
    [
        ([[1, 2, 3, 4, 2, 3, 4, 5, 6]], [(1, 4), (5, 6)]),
        ([[1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5]], [(1, 3), (4, 4), (5, 5)]),
        ([[1, 2, 3, 4], [3, 4, 5, 6], [7]], [(1, 4), (5, 6), (7, 7)]),
        ([[1, 2, 3, 4, 5, 2], [3, 4, 5, 6, 7], [8]], [(1, 5), (6, 7), (8, 8)]),
        ([[1, 2, 3, 4], [2, 3, 4, 5], [5, 6]], [(1, 4), (5, 6)]),
    ],
)
def test_the_same_records_are_kept_once_and_all_behind_them(
    server: MadeServer, tmp_path: Path, logs: list[list[int]], kept: list[tuple[int, int]]
) -> None:
    assert runs(server, tmp_path / "out", *logs) == (kept, {"logged-again"}, 0)


def test_other_records_under_the_same_numbers_are_told(server: MadeServer, tmp_path: Path) -> None:
    server.log([1, 2, 3, 4])
    server.log([3, 4, 5], data=b"other")
    server.zxid = 5
    view, done = bundled(server, tmp_path / "out")
    assert [(log.first, log.last) for log in view.logs] == [(1, 4)]
    assert {"log-overlap", "logged-again"} & {f.code for f in done.findings} == {"log-overlap"}
    assert done.exit_code == 21


def test_other_records_within_a_file_are_told(server: MadeServer, tmp_path: Path) -> None:
    server.log([1, 2, 3], tail=txn(2, data=b"other") + txn(3, data=b"other") + txn(4))
    server.zxid = 4
    _, done = bundled(server, tmp_path / "out")
    assert "logged-again" not in {f.code for f in done.findings}
    assert {f.code for f in done.findings} & {"torn-tail", "log-overlap", "lost-transactions"}


def test_backups_go_on_behind_it(server: MadeServer) -> None:
    """Between two backups, while it happens, and when all that is archived lies behind the step back."""
    place, log = new_place(), server.log([1, 2, 3, 4, 5])
    expected = [(1, 5)]
    server.zxid = 5
    archived(place, server)
    for more, new in (([3], []), ([4, 5, 6], [(6, 6)]), ([7], [(7, 7)]), ([7, 8], [(8, 8)])):
        server.add(log, more)
        server.zxid = max(server.zxid, *more)
        done = archived(place, server)
        expected += new
        assert (done.exit_code, zxids(newest(place))) == (0, expected)
    assert {verified(place, one).document.verdict for one in ids(place)} == {GOOD}


def test_backups_go_on_where_the_next_log_begins_with_it(server: MadeServer) -> None:
    place = new_place()
    server.log([1, 2, 3, 4, 5])
    server.zxid = 5
    archived(place, server)
    log = server.log([3])
    assert archived(place, server).exit_code == 0
    server.add(log, [4, 5, 6])
    server.zxid = 6
    assert archived(place, server).exit_code == 0
    assert zxids(newest(place)) == [(1, 5), (6, 6)]
