"""A server that catches up with others may log once more what it has: nothing is lost by it, and nothing kept twice.

Members of 3.5 to 3.8 were seen to do so after the death of a leader, and observers that left and joined again.
"""

from pathlib import Path

import pytest

from logkeep.errors import HistoryUnproven
from logkeep.repository.backups.verdicts import GOOD
from tests.support.zookeeper.handmade_directories import MadeServer, bundled, damaged_in, txn
from tests.support.zookeeper.repaired_backups import byte_in, damage, ids, verified, viewed
from tests.support.zookeeper.repositories import archived, archived_all, new_place, newest, zxids

EPOCH = 1 << 32


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


@pytest.mark.parametrize(("last", "beyond"), [(4, {"lost-transactions", "behind-the-server"}), (3, set[str]())])
def test_other_records_within_a_file_are_told_and_not_kept(
    server: MadeServer, tmp_path: Path, last: int, beyond: set[str]
) -> None:
    """Nor what stands behind them: it belongs to those, and no tree ever had both."""
    server.log([1, 2, 3], tail=b"".join(txn(zxid, data=b"other") for zxid in range(2, last + 1)))
    server.zxid = last
    view, done = bundled(server, tmp_path / "out")
    assert [(log.first, log.last) for log in view.logs] == [(1, 3)]
    assert {f.code for f in done.findings} == {"log-overlap", *beyond}
    assert done.exit_code == (21 if beyond else 2)


def test_what_contradicts_goes_with_the_new_records_right_before_it(server: MadeServer, tmp_path: Path) -> None:
    """The third record is lost in one log; in the other one it comes with others than the kept ones."""
    damaged_in(server.log([1, 2, 3, 4, 5, 6]), 2)
    server.log([3, 4, 5], data=b"other")
    server.zxid = 6
    view, done = bundled(server, tmp_path / "out")
    assert [(log.first, log.last) for log in view.logs] == [(1, 2), (4, 6)]
    assert {"log-overlap", "lost-transactions"} <= {f.code for f in done.findings}
    assert done.exit_code == 21


@pytest.mark.parametrize("logs", [[[1, 2, 3, 4, 5, 3, 4, EPOCH + 1, EPOCH + 2]], [[1, 2, 3, 4, 5], [3, 4, EPOCH + 1]]])
def test_an_epoch_behind_some_of_the_records_is_kept(server: MadeServer, tmp_path: Path, logs: list[list[int]]) -> None:
    """That the fifth was given up is for others to tell: here it only does not count as the end of its epoch."""
    kept, codes, code = runs(server, tmp_path / "out", *logs)
    assert kept == [(1, 5), (EPOCH + 1, max(logs[-1]))]
    assert (codes, code) == ({"logged-again", "end-unreachable"}, 21)


@pytest.mark.parametrize("again", [[[1, 2, 3, 4, 5, 3, 4, 5, EPOCH + 1]], [[1, 2, 3, 4, 5], [3, 4, 5, EPOCH + 1]]])
def test_the_end_of_an_epoch_that_came_twice_is_proven_by_two_members(tmp_path: Path, again: list[list[int]]) -> None:
    members = []
    for number, logs in enumerate([[[1, 2, 3, 4, 5, EPOCH + 1]], again]):
        members.append(MadeServer(tmp_path / f"member{number}", mode="follower" if number else "leader"))
        members[-1].snapshot(0, digest=False)
        members[-1].zxid = EPOCH + 1
        for log in logs:
            members[-1].log(log)
    assert archived_all(new_place(), members).exit_code == 0


@pytest.mark.parametrize(
    ("logs", "kept"),
    [
        ([[1, 2, 3, 4, 5, 6, 3, 4, 5, 6, 7]], [(1, 2), (3, 3), (4, 6), (7, 7)]),
        ([[1, 2, 3, 4, 5, 6], [3, 4, 5, 6, 7]], [(1, 2), (3, 3), (4, 6), (7, 7)]),
        ([[1, 2, 3, 4, 5, 6], [3]], [(1, 2), (3, 3), (4, 6)]),
        ([[1, 2, 3, 4, 5, 6], [5, 6, 3, 4, 5, 6, 7]], [(1, 2), (3, 3), (4, 6), (7, 7)]),
    ],
)
def test_what_is_damaged_in_one_place_and_whole_in_another_is_kept(
    server: MadeServer, tmp_path: Path, logs: list[list[int]], kept: list[tuple[int, int]]
) -> None:
    """Damage is no torn end, also when nothing is lost by it."""
    damaged_in(server.log(logs[0]), 2)
    for log in logs[1:]:
        server.log(log)
    server.zxid = max(zxid for log in logs for zxid in log)
    view, done = bundled(server, tmp_path / "out")
    assert [(log.first, log.last) for log in view.logs] == kept
    assert {f.code for f in done.findings} - {"logged-again"} == {"held-elsewhere"}
    assert done.exit_code == 2


def test_what_is_damaged_and_only_partly_elsewhere_is_lost(server: MadeServer, tmp_path: Path) -> None:
    damaged_in(server.log([1, 2, 3, 4, 5, 6]), 2, 3)
    server.log([3])
    server.snapshot(6)
    server.zxid = 6
    view, done = bundled(server, tmp_path / "out")
    assert [(log.first, log.last) for log in view.logs] == [(1, 2), (3, 3), (5, 6)]
    (lost,) = [f for f in done.findings if f.code == "lost-transactions"]
    assert "0x4 to 0x4" in lost.what
    assert done.exit_code == 21


def test_other_records_elsewhere_do_not_help_what_is_damaged(server: MadeServer, tmp_path: Path) -> None:
    damaged_in(server.log([1, 2, 3, 4, 5, 6, 7, 8]), 5)
    server.log([4, 5, 6, 7, 8], data=b"other")
    server.snapshot(8)
    server.zxid = 8
    view, done = bundled(server, tmp_path / "out")
    assert [(log.first, log.last) for log in view.logs] == [(1, 5), (7, 8)]
    assert {f.code for f in done.findings} == {"log-overlap", "lost-transactions"}
    assert done.exit_code == 21


@pytest.mark.parametrize("last", [7, 10, 12])
@pytest.mark.parametrize("within", [True, False])
def test_other_records_than_the_archived_ones_are_another_history(server: MadeServer, within: bool, last: int) -> None:
    """Whether they have got to the last archived one yet or not, and whatever the server says."""
    place, log = new_place(), server.log(list(range(1, 11)))
    server.zxid = 10
    archived(place, server)
    other = range(4, last + 1)
    server.add(log, other, data=b"other") if within else server.log(other, data=b"other")
    for zxid in (10, None):
        server.zxid = zxid if zxid is None else max(zxid, last)
        with pytest.raises(HistoryUnproven, match="another transaction"):
            archived(place, server)
    assert zxids(newest(place)) == [(1, 10)]


@pytest.mark.parametrize("logs", [[[1, 2, 3, 4, 5, 3, 4, 5, 6, 7]], [[1, 2, 3, 4, 5], [3, 4, 5, 6, 7]]])
@pytest.mark.parametrize("piece", [0, 1])
def test_damaged_pieces_are_copied_again_from_such_logs(server: MadeServer, logs: list[list[int]], piece: int) -> None:
    place = new_place()
    files = [server.log(log) for log in logs]
    server.zxid = 7
    archived(place, server)
    view = viewed(place, ids(place)[-1])
    damage(place, view, view.logs[piece], byte_in(0))
    assert verified(place, ids(place)[-1]).document.verdict != GOOD
    server.add(files[-1], [8])
    server.zxid = 8
    done = archived(place, server)
    assert (done.exit_code, {f.code for f in done.findings} - {"logged-again"}) == (2, {"copied-again"})


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
