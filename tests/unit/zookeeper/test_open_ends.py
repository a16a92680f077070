"""An epoch whose end is missing: what a member logged before the hole may never have been committed."""

import pytest

from logkeep.model.segments import Proof
from logkeep.zookeeper.kept import Member
from logkeep.zookeeper.plan import END_OPEN, ToZxid
from logkeep.zookeeper.prove import Proven, proven_path
from logkeep.zookeeper.survey import LogTimes, survey
from tests.zookeeper.made import MemoryView, Past, add_member, backup_of, epoch

ONE, TWO = epoch(1, 6), epoch(2, 9)
PAST = Past([*ONE, *TWO])
LAST = ONE[-1]


def brought_up_to_date(*snapshots: int, role: str = "follower") -> MemoryView:
    """It has all of the first epoch, and of the second what came behind the snapshot that it got."""
    view = backup_of(PAST, snapshot_at=[0, *snapshots], logs=[ONE], role=role)
    add_member(view, PAST, snapshot_at=[TWO[4]], logs=[TWO[5:]], member="a")
    return view


def is_doubted(view: MemoryView, zxid: int) -> bool:
    found = proven_path(view, survey(view), ToZxid(zxid), LogTimes(view))
    assert isinstance(found, Proven)
    assert (found.path.proof is Proof.UNPROVEN) == (END_OPEN in found.path.labels)
    return END_OPEN in found.path.labels


def test_what_one_member_alone_has_before_the_hole_is_doubted() -> None:
    view = brought_up_to_date()
    assert is_doubted(view, LAST)
    assert not is_doubted(view, TWO[-1])


def test_what_a_snapshot_holds_was_committed() -> None:
    view = brought_up_to_date(ONE[3])
    assert [is_doubted(view, zxid) for zxid in ONE[2:]] == [False, False, True, True]


@pytest.mark.parametrize("role", ["follower", "observer"])
def test_what_a_majority_or_an_observer_has_was_committed(role: str) -> None:
    view = brought_up_to_date()
    view.members.append(Member(name="b", role=role))
    add_member(view, PAST, snapshot_at=[], logs=[ONE[:-1]], member="b")
    assert is_doubted(view, LAST)
    assert not is_doubted(view, ONE[-2])


def test_two_of_five_voters_are_no_majority() -> None:
    view = brought_up_to_date()
    view.members = [Member(name="a", role="follower", voters=5), Member(name="b", role="follower", voters=5)]
    add_member(view, PAST, snapshot_at=[], logs=[ONE], member="b")
    assert is_doubted(view, LAST)


def test_a_server_that_stands_alone_commits_what_it_logs() -> None:
    assert not is_doubted(brought_up_to_date(role="standalone"), LAST)
