"""An epoch whose end is missing: what a member logged before the hole may never have been committed."""

from pathlib import Path

import pytest

from logkeep.model.segments import Proof
from logkeep.zookeeper.model.archived import Member
from logkeep.zookeeper.timeline.plan import END_OPEN, TAIL_UNPROVEN, ToZxid
from logkeep.zookeeper.timeline.proof import ProvenPath, proven_path
from logkeep.zookeeper.timeline.survey import LogTimes, survey
from logkeep.zookeeper.verify.directory_view import directory_view
from logkeep.zookeeper.verify.run import Level, verify
from tests.support.zookeeper.handmade_directories import MadeServer
from tests.support.zookeeper.handmade_history import MemoryView, Past, add_member, backup_of, epoch
from tests.support.zookeeper.repositories import archived, new_place, newest

ONE, TWO = epoch(1, 6), epoch(2, 9)
PAST = Past([*ONE, *TWO])
LAST = ONE[-1]


def brought_up_to_date(*snapshots: int, role: str = "follower", told: int = 0) -> MemoryView:
    """It has all of the first epoch, and of the second what came behind the snapshot that it got.

    `told`: how many of the first epoch it said it had processed, to a backup that came in time to ask.
    """
    view = backup_of(PAST, snapshot_at=[0, *snapshots], logs=[ONE[:told]] if told else [], role=role)
    if told < len(ONE):
        add_member(view, PAST, snapshot_at=[], logs=[ONE[told:]], member="a", proof=Proof.UNPROVEN)
    add_member(view, PAST, snapshot_at=[TWO[4]], logs=[TWO[5:]], member="a")
    return view


def is_doubted(view: MemoryView, zxid: int) -> bool:
    found = proven_path(view, survey(view), ToZxid(zxid), LogTimes(view))
    assert isinstance(found, ProvenPath)
    assert (found.path.proof is Proof.UNPROVEN) == bool({END_OPEN, TAIL_UNPROVEN} & {*found.path.labels})
    return END_OPEN in found.path.labels


def test_what_one_member_alone_has_before_the_hole_is_doubted() -> None:
    view = brought_up_to_date()
    assert is_doubted(view, LAST)
    assert not is_doubted(view, TWO[-1])


def test_the_interval_up_to_it_says_so() -> None:
    found = verify(brought_up_to_date(), Level.DATA).reachable["1"]
    assert [END_OPEN in str(interval) for interval in found] == [True, False]
    assert [interval.last.zxid for interval in found] == [LAST, TWO[-1]]


def test_what_a_snapshot_holds_was_committed() -> None:
    view = brought_up_to_date(ONE[3])
    assert [is_doubted(view, zxid) for zxid in ONE[2:]] == [False, False, True, True]


@pytest.mark.parametrize("role", ["follower", "observer"])
def test_what_a_majority_or_an_observer_has_was_committed(role: str) -> None:
    view = brought_up_to_date()
    view.members.append(Member(name="b", role=role))
    add_member(view, PAST, snapshot_at=[], logs=[ONE[:-1]], member="b", proof=Proof.UNPROVEN)
    assert is_doubted(view, LAST)
    assert not is_doubted(view, ONE[-2])


def test_two_of_five_voters_are_no_majority() -> None:
    view = brought_up_to_date()
    view.members = [Member(name="a", role="follower", voters=5), Member(name="b", role="follower", voters=5)]
    add_member(view, PAST, snapshot_at=[], logs=[ONE], member="b", proof=Proof.UNPROVEN)
    assert is_doubted(view, LAST)


def test_a_server_that_stands_alone_commits_what_it_logs() -> None:
    assert not is_doubted(brought_up_to_date(role="standalone"), LAST)


def test_what_a_server_said_it_had_processed_was_committed() -> None:
    view = brought_up_to_date(told=4)
    assert [is_doubted(view, zxid) for zxid in ONE[2:]] == [False, False, True, True]


def test_a_backup_of_one_member_stays_proven_when_a_later_one_finds_a_hole(tmp_path: Path) -> None:
    """The second backup takes over what the first one had proven."""
    place, server = new_place(), MadeServer(tmp_path, zxid=ONE[3], mode="follower")
    server.snapshot(0, digest=False)
    server.log(ONE[:4])
    archived(place, server)
    server.snapshot(TWO[4], digest=False)
    server.log(TWO[5:])
    server.zxid = TWO[-1]
    archived(place, server)
    view = newest(place)
    found = proven_path(view, survey(view), ToZxid(ONE[3]), LogTimes(view))
    assert isinstance(found, ProvenPath)
    assert not {END_OPEN, TAIL_UNPROVEN} & {*found.path.labels}


@pytest.mark.parametrize(("role", "old"), [("follower", Proof.UNPROVEN), ("standalone", Proof.PROVEN)])
def test_the_word_of_a_server_is_of_its_own_epoch(tmp_path: Path, role: str, old: Proof) -> None:
    """Of earlier ones it proves nothing, unless it commits alone."""
    server = MadeServer(tmp_path)
    server.log(ONE)
    server.log(TWO)
    data_dir, log_dir = str(server.snapshot_dir), str(server.log_dir)
    view = directory_view(Member(name="a", role=role, zxid=TWO[-1], data_dir=data_dir, log_dir=log_dir))
    assert [log.proof for log in view.logs] == [old, Proof.PROVEN]
