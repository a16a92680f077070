"""A member that its leader brought up to date by a snapshot: a hole in its logs, and before it what nobody committed.

A server that has to go back behind that snapshot starts, with both, and says nothing.
"""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from logkeep.embedded.zookeeper import EmbeddedZooKeeper
from logkeep.formats.zookeeper.names import epoch_of
from logkeep.model.segments import Proof
from logkeep.zookeeper.model.findings import Class
from logkeep.zookeeper.timeline.plan import END_OPEN, RestoreRefused, Target, ToEnd, ToZxid
from logkeep.zookeeper.timeline.proof import ProvenPath, proven_path
from logkeep.zookeeper.timeline.survey import LogTimes, survey
from logkeep.zookeeper.verify.directory_view import DirectoryView
from logkeep.zookeeper.verify.run import Level, verify
from tests.support.servers.zookeeper_ensemble import ZooKeeperMember
from tests.support.zookeeper.damaged_directories import server
from tests.support.zookeeper.diverged_leader import BEFORE, LATER, MEANWHILE, NEVER, Parted, last_logged, parted
from tests.support.zookeeper.restored_servers import view_of
from tests.support.zookeeper.server_files import logs, snapshots
from tests.support.zookeeper.slow_log import good_records
from tests.support.zookeeper.tree_judge import differences
from tests.support.zookeeper.tree_recorder import record
from tests.support.zookeeper.versions import versions

pytestmark = pytest.mark.xdist_group("zookeeper-restored-ensemble")


@pytest.fixture(scope="module", params=versions(everyday=("3.9.5",)))
def past(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Parted:
    return parted(tmp_path_factory.mktemp("parted"), request.param)


def zxids(member: ZooKeeperMember) -> list[int]:
    return [record.zxid for path in logs(member.log_dir) for record in good_records(path.read_bytes())]


def seen(*members: EmbeddedZooKeeper) -> DirectoryView:
    """As if they had been asked where they are, right before they were stopped."""
    return view_of(members, "follower", last_logged(members[0]))


def to(view: DirectoryView, target: Target) -> ProvenPath | RestoreRefused:
    return proven_path(view, survey(view), target, LogTimes(view))


def ends_as_it_was(past: Parted, view: DirectoryView) -> bool:
    end = to(view, ToEnd())
    assert isinstance(end, ProvenPath)
    return differences(replace(past.truth, zxid=end.path.until), end.replayed.tree) == []


def test_it_has_a_hole_behind_what_nobody_committed(past: Parted) -> None:
    """What the other tests begin with, as the member's own files tell it."""
    held, theirs = zxids(past.synced), zxids(past.others[0])
    assert past.never in held
    assert past.never not in theirs
    missing = {zxid for zxid in theirs if epoch_of(zxid) > epoch_of(past.never) and zxid <= past.joined}
    assert len(missing) > 500
    assert not missing & set(held)
    assert max(held) > past.joined


def test_its_own_files_give_its_end_and_doubt_what_lies_before_the_hole(past: Parted) -> None:
    view = seen(past.synced)
    verified = verify(view, Level.REPLAY, known=view.seen)
    assert not verified.failed
    assert Class.LOST_TRANSACTIONS in {each.kind for each in verified.seen}
    assert ends_as_it_was(past, view)
    doubted = to(view, ToZxid(past.never))
    assert isinstance(doubted, ProvenPath)
    assert (doubted.path.proof, END_OPEN in doubted.path.labels) == (Proof.UNPROVEN, True)
    assert isinstance(to(view, ToZxid(past.joined - 1)), RestoreRefused)


def test_the_others_tell_that_it_was_never_committed(past: Parted) -> None:
    view = seen(past.synced, *past.others)
    verified = verify(view, Level.REPLAY, known=view.seen)
    assert not verified.failed
    assert Class.NEVER_COMMITTED in {each.kind for each in verified.seen}
    assert Class.LOST_TRANSACTIONS not in {each.kind for each in verified.seen}
    assert ends_as_it_was(past, view)
    for zxid in (past.never - 1, past.never):
        end = to(view, ToZxid(zxid))
        assert isinstance(end, ProvenPath)
        assert end.path.until == past.never - 1
        assert NEVER.encode() not in end.replayed.tree.nodes


def of_its_first_epoch(member: ZooKeeperMember, home: Path) -> EmbeddedZooKeeper:
    """A lone server with a copy of its files, without the snapshots behind the first log: as when they are damaged."""
    for directory in (member.data_dir, member.log_dir):
        shutil.copytree(directory, home / directory.name)
    alone = server(home, member.release, home / member.data_dir.name)
    alone.log_dir = home / member.log_dir.name
    begun = good_records(logs(alone.log_dir)[0].read_bytes())[0].zxid
    for path in snapshots(alone.data_dir):
        if int(path.name.split(".")[1], 16) >= begun:
            path.unlink()
    return alone


def shown_by(alone: EmbeddedZooKeeper) -> set[str]:
    with alone:
        return {*record(alone.client, alone.password).nodes} & {BEFORE, NEVER, MEANWHILE, LATER}


def refusal(alone: EmbeddedZooKeeper) -> str:
    """Why its end is not restored."""
    view = seen(alone)
    assert not verify(view, Level.REPLAY, known=view.seen).restorable
    end = to(view, ToEnd())
    assert isinstance(end, RestoreRefused)
    return end.what


def test_without_that_snapshot_a_server_starts_with_both_and_says_nothing(past: Parted, tmp_path: Path) -> None:
    """No number tells a server: the hole begins with an epoch."""
    alone = of_its_first_epoch(past.synced, tmp_path)
    assert "transactions are missing" in refusal(alone)
    assert shown_by(alone) == {BEFORE, NEVER, LATER}


def test_the_lost_end_of_an_epoch_on_one_member(past: Parted, tmp_path: Path) -> None:
    """All servers start without it. Before 3.6 there are no digests, and one member is not believed, whole or not."""
    alone = of_its_first_epoch(past.others[0], tmp_path)
    digests = past.synced.release.line >= (3, 6)
    unproven = f"nothing proves that epoch {epoch_of(past.never)} ended with"
    assert isinstance(to(seen(alone), ToEnd()), ProvenPath) if digests else unproven in refusal(alone)
    log = logs(alone.log_dir)[0]
    lost = good_records(log.read_bytes())[-1]
    assert lost.zxid == past.never - 1
    log.write_bytes(log.read_bytes()[: lost.position])
    assert ("the digest that the server wrote" if digests else unproven) in refusal(alone)
    assert shown_by(alone) == {MEANWHILE, LATER}
