"""Plan and replay together: digests decide between ends of epochs, and nothing is believed that they contradict."""

from logkeep.model.segments import Proof
from logkeep.zookeeper.model.archived import Member
from logkeep.zookeeper.timeline.holdings import BorderProof
from logkeep.zookeeper.timeline.plan import RestorePath, RestoreRefused, ToEnd, ToTime, ToZxid, plan
from logkeep.zookeeper.timeline.proof import ProvenPath, proven_path
from logkeep.zookeeper.timeline.replay import replay
from logkeep.zookeeper.timeline.survey import LogTimes, survey
from logkeep.zookeeper.timeline.timeline import line_of
from tests.support.zookeeper.handmade_history import MemoryView, Past, add_member, backup_of, epoch

ONE, TWO = epoch(1, 6), epoch(2, 5)


def test_a_replay_gives_the_tree_and_compares_every_digest() -> None:
    past = Past(range(1, 21))
    view = backup_of(past, snapshot_at=[5], logs=[range(1, 10), range(10, 21)])
    holdings, times = survey(view), LogTimes(view)
    path = plan(holdings, ToEnd(), times)
    assert isinstance(path, RestorePath)
    assert [(piece.first, piece.last) for piece in path.slices] == [(6, 9), (10, 20)]
    found = replay(view, path, note_at={9, 20})
    assert found.tree.digest == past.tree.digest
    assert found.tree.nodes.keys() == past.tree.nodes.keys()
    assert (found.transactions, found.digests_compared, found.first_mismatch) == (15, 16, None)
    assert found.proven_until == 20
    assert found.digests_at == {9: past.digest_at[9], 20: past.digest_at[20]}


def test_inside_the_window_of_a_fuzzy_snapshot_no_digest_is_compared() -> None:
    past = Past(range(1, 21))
    view = backup_of(past, snapshot_at=[], logs=[range(1, 21)])
    view.logs[0] = view.logs[0]
    view.add_snapshot(past.snapshots[12], 8, fuzzy_end=12, digest=past.digest_at[12])
    holdings, times = survey(view, without=()), LogTimes(view)
    only = [snapshot for snapshot in holdings.snapshots if snapshot.zxid == 8]
    path = plan(holdings, ToZxid(15), times)
    assert isinstance(path, RestorePath)
    assert path.base.snapshot == only[0]
    found = replay(view, path)
    assert found.first_mismatch is None
    assert found.digests_compared == 5  # the snapshot's own at 12, and those of 12 to 15
    assert found.tree.digest == past.digest_at[15]
    inside = plan(holdings, ToZxid(10), times)
    assert isinstance(inside, RestorePath)
    assert inside.base.snapshot is None  # the logs go back to the beginning


def test_a_transaction_that_nobody_noticed_is_missing_is_found_by_its_digest() -> None:
    """The last of an epoch is gone from the only member that is held: no number tells."""
    past = Past([*ONE, *TWO])
    view = backup_of(past, snapshot_at=[0], logs=[ONE[:-1], TWO], role="follower")
    holdings, times = survey(view), LogTimes(view)
    assert [border.proof for border in line_of(holdings, "1").borders] == [BorderProof.BY_DIGEST]
    found = proven_path(view, holdings, ToEnd(), times)
    assert isinstance(found, RestoreRefused)
    assert "0x200000001" in found.what
    assert [(each.first.zxid, each.last.zxid) for each in found.reachable] == [(0, ONE[-2])]


def test_digests_choose_between_two_ends_of_an_epoch() -> None:
    """One member was away at the end of the epoch, another holds all of it: their logs tell different ends."""
    past = Past([*ONE, *TWO])
    view = MemoryView(members=[Member(name="a", role="follower"), Member(name="b", role="follower")])
    add_member(view, past, snapshot_at=[0], logs=[ONE[:-2], TWO], member="a")
    add_member(view, past, snapshot_at=[0], logs=[ONE, TWO], member="b")
    holdings, times = survey(view), LogTimes(view)
    found = proven_path(view, holdings, ToEnd(), times)
    assert isinstance(found, ProvenPath)
    assert found.replayed.tree.digest == past.tree.digest
    assert found.path.borders[-1].before == ONE[-1]


def test_proposals_that_were_never_committed_are_left_out() -> None:
    past = Past([*ONE, *TWO])
    proposed = Past([*ONE, ONE[-1] + 1, ONE[-1] + 2])
    view = MemoryView(members=[Member(name="a", role="follower"), Member(name="b", role="follower")])
    add_member(view, past, snapshot_at=[0], logs=[ONE, TWO], member="a")
    add_member(view, proposed, snapshot_at=[], logs=[[*ONE, ONE[-1] + 1, ONE[-1] + 2]], member="b")
    view.add_log([past.records[zxid] for zxid in TWO], "b", borders=((ONE[-1] + 2, TWO[0]),))
    holdings, times = survey(view), LogTimes(view)
    found = proven_path(view, holdings, ToEnd(), times)
    assert isinstance(found, ProvenPath)
    assert found.replayed.tree.digest == past.tree.digest
    assert line_of(found.holdings, "1").abandoned == ((ONE[-1] + 1, ONE[-1] + 2),)


def test_without_digests_two_of_three_voters_are_enough_and_one_is_not() -> None:
    past = Past([*ONE, *TWO], digests=False)
    view = backup_of(past, snapshot_at=[0], logs=[ONE, TWO], role="follower")
    refused = proven_path(view, survey(view), ToEnd(), LogTimes(view))
    assert isinstance(refused, RestoreRefused)
    assert "epoch 1 ended" in refused.what
    believed = proven_path(view, survey(view), ToEnd(), LogTimes(view), believe=True)
    assert isinstance(believed, ProvenPath)
    assert believed.path.proof is Proof.UNPROVEN
    view.members.append(Member(name="b", role="leader"))
    add_member(view, past, snapshot_at=[], logs=[[*ONE, *TWO]], member="b")
    agreed = proven_path(view, survey(view), ToEnd(), LogTimes(view))
    assert isinstance(agreed, ProvenPath)
    assert agreed.replayed.tree.digest == past.tree.digest


def test_an_observer_is_no_voter() -> None:
    past = Past([*ONE, *TWO], digests=False)
    view = backup_of(past, snapshot_at=[0], logs=[ONE, TWO], role="follower")
    view.members.append(Member(name="o", role="observer"))
    add_member(view, past, snapshot_at=[], logs=[[*ONE, *TWO]], member="o")
    assert isinstance(proven_path(view, survey(view), ToEnd(), LogTimes(view)), RestoreRefused)


def test_members_fill_each_others_holes_unless_they_disagree() -> None:
    past = Past(range(1, 31))
    view = MemoryView(members=[Member(name="a", role="follower"), Member(name="b", role="follower")])
    add_member(view, past, snapshot_at=[0], logs=[range(1, 11), range(21, 31)], member="a")
    add_member(view, past, snapshot_at=[], logs=[range(8, 24)], member="b")
    found = proven_path(view, survey(view), ToEnd(), LogTimes(view))
    assert isinstance(found, ProvenPath)
    assert [piece.log.member for piece in found.path.slices] == ["a", "b", "a"]
    other = Past(range(2, 31))
    view.objects[view.logs[1]] = view.objects[view.logs[1]]
    forked = MemoryView(members=view.members)
    add_member(forked, past, snapshot_at=[0], logs=[range(1, 11), range(21, 31)], member="a")
    add_member(forked, other, snapshot_at=[], logs=[range(8, 24)], member="b")
    holdings = survey(forked)
    assert {(each.first, each.last) for each in holdings.disputed} == {(8, 10), (21, 23)}
    refused = plan(holdings, ToEnd(), LogTimes(forked))
    assert isinstance(refused, RestoreRefused)
    assert [(each.first.zxid, each.last.zxid) for each in refused.reachable] == [(0, 7)]


def test_a_time_is_told_with_its_neighbours() -> None:
    past = Past(range(1, 21))
    view = backup_of(past, snapshot_at=[2], logs=[range(1, 10), range(10, 21)])
    path = plan(survey(view), ToTime(past.time_of(13) + 1), LogTimes(view))
    assert isinstance(path, RestorePath)
    assert (path.last_restored.zxid, path.last_restored.time_ms) == (13, past.time_of(13))
    assert path.next_left_out is not None
    assert (path.next_left_out.zxid, path.next_left_out.time_ms) == (14, past.time_of(14))
    assert str(path.next_left_out) == "0xe (2023-11-14T22:13:33.000Z)"


def test_a_time_in_a_hole_is_refused_with_what_is_around_it() -> None:
    past = Past(range(1, 21))
    view = backup_of(past, snapshot_at=[2, 15], logs=[range(1, 10), range(13, 21)])
    refused = plan(survey(view), ToTime(past.time_of(11)), LogTimes(view))
    assert isinstance(refused, RestoreRefused)
    assert [each.zxid for each in refused.neighbours] == [9, 13]
    assert [(each.first.zxid, each.last.zxid) for each in refused.reachable] == [(0, 9), (15, 20)]
    assert "0xf (" in refused.error("backup 1").remedy


def test_a_snapshot_that_nothing_bounds_is_exact_where_a_digest_fits() -> None:
    """As members write them after a sync: no digest inside, and nothing tells where its window ends."""
    past = Past(range(1, 31))
    view = backup_of(past, snapshot_at=[], logs=[range(6, 31)])
    view.add_snapshot(past.snapshots[12], 8, fuzzy_end=None)
    found = proven_path(view, survey(view), ToEnd(), LogTimes(view))
    assert isinstance(found, ProvenPath)
    assert found.replayed.tree.digest == past.tree.digest
    assert (found.path.proof, found.path.labels) == (Proof.PROVEN, ())
    inside = proven_path(view, survey(view), ToZxid(10), LogTimes(view))
    assert isinstance(inside, RestoreRefused)
    assert "no digest" in inside.what


def test_where_no_digest_fits_the_next_older_snapshot_is_tried() -> None:
    past, other = Past(range(1, 31)), Past(range(2, 31))
    view = backup_of(past, snapshot_at=[5], logs=[range(1, 31)])
    view.add_snapshot(other.snapshots[20], 20, fuzzy_end=20)
    found = proven_path(view, survey(view), ToEnd(), LogTimes(view))
    assert isinstance(found, ProvenPath)
    assert found.path.base.zxid == 5
    assert found.replayed.tree.digest == past.tree.digest


def test_a_mismatch_is_accepted_only_by_word_and_is_labelled() -> None:
    past = Past([*ONE, *TWO])
    view = backup_of(past, snapshot_at=[0], logs=[ONE[:-1], TWO], role="follower")
    found = proven_path(view, survey(view), ToEnd(), LogTimes(view), accept_mismatch=True, believe=True)
    assert isinstance(found, ProvenPath)
    assert found.path.proof is Proof.UNPROVEN
    assert "the digests of the server contradict it" in found.path.labels


def test_without_a_digest_nothing_is_more_than_bounded() -> None:
    past = Past(range(1, 31), digests=False)
    view = backup_of(past, snapshot_at=[5], logs=[range(4, 31)])
    found = proven_path(view, survey(view), ToEnd(), LogTimes(view))
    assert isinstance(found, ProvenPath)
    assert (found.path.proof, found.path.labels) == (Proof.BOUNDED, ("bounded, no digest",))


def test_a_number_between_two_epochs_is_the_end_of_the_first_only_if_that_is_known() -> None:
    past = Past([*ONE, *TWO])
    view = backup_of(past, snapshot_at=[0], logs=[ONE, TWO], role="follower")
    assert isinstance(plan(survey(view), ToZxid(TWO[0] - 1), LogTimes(view)), RestoreRefused)
    view.members.append(Member(name="b", role="leader"))
    add_member(view, past, snapshot_at=[], logs=[[*ONE, *TWO]], member="b")
    path = plan(survey(view), ToZxid(TWO[0] - 1), LogTimes(view))
    assert isinstance(path, RestorePath)
    assert path.until == ONE[-1]
