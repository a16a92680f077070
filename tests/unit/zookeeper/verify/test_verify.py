"""Verification of backups in memory: what is wrong is found at the level that can find it, and told precisely."""

import hashlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkeep.formats.zookeeper.snapshot_writer import exact_snapshot
from logkeep.model.findings import Severity
from logkeep.zookeeper.model.archived import Member
from logkeep.zookeeper.model.findings import Class
from logkeep.zookeeper.model.tree import rows_of
from logkeep.zookeeper.verify.run import Level, VerifiedFiles, verify
from tests.support.zookeeper.encoding import record
from tests.support.zookeeper.handmade_history import MemoryView, Past, add_member, backup_of, epoch, kept_log

PAST = Past(range(1, 31))
LOGS = (range(1, 11), range(11, 21), range(21, 31))


def good() -> MemoryView:
    return backup_of(PAST, snapshot_at=[0, 10, 20], logs=LOGS)


def kinds(verified: VerifiedFiles) -> set[Class]:
    return {each.kind for each in verified.seen if each.severity is not Severity.NOTE}


@pytest.mark.parametrize("level", (Level.FILES, Level.DATA, Level.REPLAY))
def test_a_good_backup_is_good_at_every_level(level: Level) -> None:
    found = verify(good(), level)
    assert found.seen == ()
    assert found.restorable
    assert not found.failed
    assert found.end == 30
    assert found.objects == 6
    assert [(each.first.zxid, each.last.zxid) for each in found.reachable["1"]] == [(0, 30)]
    if level is Level.REPLAY:
        assert found.transactions == 30
        assert found.digests_compared == 32  # all transactions, and what two snapshots say themselves


@given(data=st.data())
def test_a_flipped_bit_is_found_anywhere(data: st.DataObject) -> None:
    view = good()
    kept = data.draw(st.sampled_from(list(view.objects)))
    content = bytearray(view.objects[kept])
    bit = data.draw(st.integers(0, 8 * len(content) - 1))
    content[bit // 8] ^= 1 << bit % 8
    view.objects[kept] = bytes(content)
    found = verify(view, Level.DATA)
    assert found.failed
    assert found.damaged_files == 1 or found.lost
    assert any(kept.name in each.where for each in found.seen)


@given(data=st.data())
def test_a_cut_object_is_found_by_its_size(data: st.DataObject) -> None:
    view = good()
    kept = data.draw(st.sampled_from(list(view.objects)))
    view.objects[kept] = view.objects[kept][: data.draw(st.integers(0, len(view.objects[kept]) - 1))]
    found = verify(view, Level.FILES)
    assert Class.SIZE_MISMATCH in kinds(found)
    assert verify(view, Level.DATA).failed


def test_a_missing_object_is_found_and_its_transactions_are_named() -> None:
    view = good()
    del view.objects[view.logs[1]]
    found = verify(view, Level.DATA)
    assert {Class.OBJECT_MISSING, Class.LOST_TRANSACTIONS} <= kinds(found)
    assert found.lost == ((11, 20),)
    assert found.restorable  # the last snapshot is behind the loss
    assert found.old_hole
    assert [(each.first.zxid, each.last.zxid) for each in found.reachable["1"]] == [(0, 10), (20, 30)]


def test_a_hole_that_no_snapshot_covers_ends_what_can_be_restored() -> None:
    view = backup_of(PAST, snapshot_at=[0], logs=[LOGS[0], LOGS[2]])
    found = verify(view, Level.DATA)
    assert not found.restorable
    assert kinds(found) == {Class.END_UNREACHABLE, Class.LOST_TRANSACTIONS}
    assert found.failed
    assert found.lost == ((11, 20),)


def test_a_gap_between_the_snapshot_and_the_first_log_is_lost_transactions() -> None:
    """Servers of every version start on this and say nothing."""
    found = verify(backup_of(PAST, snapshot_at=[10], logs=[LOGS[2]]), Level.DATA)
    assert not found.restorable
    assert found.lost == ((11, 20),)
    assert [(each.first.zxid, each.last.zxid) for each in found.reachable["1"]] == [(10, 10)]


def test_a_flipped_record_is_told_with_its_place() -> None:
    view = good()
    log = view.logs[1]
    content = bytearray(view.objects[log])
    at = 16 + sum(len(PAST.records[zxid]) for zxid in (11, 12, 13)) + 40
    content[at] ^= 1
    view.objects[log] = bytes(content)
    found = verify(view, Level.DATA)
    (seen,) = [each for each in found.seen if each.kind is Class.LOG_DAMAGED]
    assert (seen.position, seen.zxid, seen.lost) == (at - 40, 13, (14, 14))
    assert "a/log.b" in seen.finding.where
    assert "lost 0xe to 0xe" in seen.finding.what


def test_a_record_that_was_changed_with_its_checksum_is_found_by_the_digest() -> None:
    other = Past([*range(2, 16)])
    records = [PAST.records[zxid] for zxid in LOGS[1]]
    assert records[3] != other.records[14]
    records[3] = other.records[14]
    view = backup_of(PAST, snapshot_at=[0], logs=[LOGS[0]])
    view.add_log(records)
    view.add_log([PAST.records[zxid] for zxid in LOGS[2]])
    assert not verify(view, Level.DATA).failed
    found = verify(view, Level.REPLAY)
    assert not found.restorable
    assert Class.DIGEST_MISMATCH in kinds(found)
    (seen,) = [each for each in found.seen if each.kind is Class.DIGEST_MISMATCH]
    assert seen.zxid == 13


def test_without_digests_snapshots_that_lead_to_different_trees_are_found() -> None:
    past, other = Past(range(1, 31), digests=False), Past(range(2, 31), digests=False)
    view = backup_of(past, snapshot_at=[0], logs=LOGS)
    view.add_snapshot(other.snapshots[20], 20, fuzzy_end=None, bound=20, nodes=other.nodes_at[20])
    found = verify(view, Level.REPLAY)
    assert found.failed
    (seen,) = [each for each in found.seen if each.kind is Class.TREES_DIFFER]
    assert seen.severity is Severity.DAMAGE


def test_without_digests_counters_of_children_alone_are_no_damage() -> None:
    """As servers before 3.6 leave them themselves; in a tree with digests it is a digest that does not fit."""
    for digests in (False, True):
        past = Past(range(1, 31), digests=digests)
        tree = Past(range(1, 21), digests=digests).tree
        tree.nodes[b""].cversion += 1
        content = b"".join(exact_snapshot({}, *rows_of(tree), zxid=20, digest=None))
        view = backup_of(past, snapshot_at=[0], logs=LOGS)
        view.add_snapshot(content, 20, fuzzy_end=None, bound=20, nodes=past.nodes_at[20])
        seen = [each for each in verify(view, Level.REPLAY).seen if each.severity is Severity.DAMAGE]
        assert bool(seen) is digests


def test_a_snapshot_that_says_less_than_its_nodes_is_no_snapshot_that_was_kept() -> None:
    view = good()
    snapshot = view.snapshots[1]
    acls, rows = rows_of(PAST.tree)
    content = b"".join(exact_snapshot({}, acls, rows, zxid=30, digest=PAST.tree.digest))
    told = msgspec.structs.replace(snapshot, size_bytes=len(content), sha256=hashlib.sha256(content).hexdigest())
    view.snapshots[1] = told
    view.objects[told] = content
    assert Class.FACTS_DIFFER in kinds(verify(view, Level.DATA))


def test_an_epoch_end_that_too_few_members_saw_is_a_finding() -> None:
    one, two = epoch(1, 6), epoch(2, 5)
    past = Past([*one, *two], digests=False)
    view = backup_of(past, snapshot_at=[0], logs=[one, two], role="follower")
    found = verify(view, Level.DATA)
    assert {Class.EPOCH_END_UNPROVEN, Class.END_UNREACHABLE} == kinds(found)
    assert [(each.first.zxid, each.last.zxid) for each in found.reachable["1"]] == [(0, one[-1])]


def test_members_that_disagree_are_found() -> None:
    view = MemoryView(members=[Member(name="a", role="follower"), Member(name="b", role="follower")])
    add_member(view, PAST, snapshot_at=[0], logs=[range(1, 31)], member="a")
    add_member(view, Past(range(2, 31)), snapshot_at=[], logs=[range(8, 24)], member="b")
    found = verify(view, Level.DATA)
    assert {Class.MEMBERS_DISAGREE, Class.END_UNREACHABLE, Class.LOST_TRANSACTIONS} == kinds(found)


def test_the_newest_snapshot_before_digests_is_not_used_as_long_as_nothing_bounds_it() -> None:
    past = Past(range(1, 31), digests=False)
    view = backup_of(past, snapshot_at=[0], logs=LOGS)
    view.add_snapshot(past.snapshots[20], 20, fuzzy_end=None, nodes=past.nodes_at[20])
    found = verify(view, Level.REPLAY)
    assert {each.kind for each in found.seen} == {Class.SNAPSHOT_UNBOUNDED}
    assert found.restorable
    assert found.labels == ()  # the logs go back to the empty tree


def test_a_log_of_another_length_than_was_told_is_found() -> None:
    view = good()
    log = view.logs[2]
    shorter = kept_log(view.objects[log][: -len(PAST.records[30])], "a")
    view.objects[log] = view.objects[log][: -len(PAST.records[30])]
    assert shorter.last == 29
    found = verify(view, Level.DATA)
    assert found.lost == ((30, 30),)


def test_a_record_that_was_forged_with_its_checksum_has_another_hash() -> None:
    view = good()
    log = view.logs[1]
    body = PAST.records[14][12:-1]
    forged = record(body[:-13] + bytes([body[-13] ^ 1]) + body[-12:])
    assert len(forged) == len(PAST.records[14])
    view.objects[log] = view.objects[log].replace(PAST.records[14], forged)
    found = verify(view, Level.DATA)
    assert kinds(found) >= {Class.HASH_MISMATCH}
    assert found.failed
