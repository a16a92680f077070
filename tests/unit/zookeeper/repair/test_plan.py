"""Repairs of backups in memory: what comes back is what was written, and what does not is named."""

from hypothesis import given
from hypothesis import strategies as st

from logkeep.formats.zookeeper.txnlog import header
from logkeep.zookeeper.model.archived import ArchivedLog, Member
from logkeep.zookeeper.repair.plan import Repair
from logkeep.zookeeper.repair.run import repair
from logkeep.zookeeper.verify.run import Level
from tests.support.zookeeper.handmade_history import MemorySink, MemoryView, Past, add_member, backup_of

PAST = Past(range(1, 31))
LOGS = (range(1, 11), range(11, 21), range(21, 31))


def damaged(zxid: int, *, with_member: bool = False) -> MemoryView:
    """One bit of the record of a transaction is wrong."""
    view = backup_of(PAST, snapshot_at=[0], logs=LOGS, role="follower")
    if with_member:
        view.members.append(Member(name="b", role="leader"))
        add_member(view, PAST, snapshot_at=[], logs=[range(5, 26)], member="b")
    flip(view, zxid)
    return view


def flip(view: MemoryView, zxid: int) -> None:
    log = next(log for log in view.logs if log.first <= zxid <= log.last)
    content = bytearray(view.objects[log])
    content[16 + sum(len(PAST.records[each]) for each in range(log.first, zxid)) + 40] ^= 4
    view.objects[log] = bytes(content)


def test_alone_a_flipped_record_is_lost_and_its_log_becomes_two() -> None:
    view = damaged(14)
    sink = MemorySink(view)
    done = repair(view, sink)
    (plan,) = done.repairs
    assert plan.kind is Repair.SPLIT
    assert done.lost == ((14, 14),)
    assert [(log.first, log.last) for log in sink.made if isinstance(log, ArchivedLog)] == [(11, 13), (15, 20)]
    assert str(plan) == "log.b: split, lost transactions 0xe to 0xe"
    assert done.verified.failed
    assert done.verified.lost == ((14, 14),)


def test_another_member_gives_back_what_is_lost() -> None:
    view = damaged(14, with_member=True)
    sink = MemorySink(view)
    done = repair(view, sink, level=Level.REPLAY)
    assert done.repairs[0].kind is Repair.SPLICED
    assert [(part.first, part.last, part.donor.log.member) for part in done.repairs[0].spliced] == [(14, 14, "b")]
    assert done.lost == ()
    assert not done.verified.failed
    assert done.verified.restorable
    (content,) = sink.made.values()
    assert content == header() + b"".join(PAST.records[zxid] for zxid in LOGS[1])


def test_an_earlier_backup_gives_back_what_is_lost_if_it_is_of_the_same_history() -> None:
    earlier = backup_of(PAST, snapshot_at=[], logs=[range(1, 18)])
    done = repair(damaged(14), MemorySink(damaged(14)), earlier=[earlier], level=Level.REPLAY)
    assert done.repairs[0].kind is Repair.SPLICED
    assert not done.verified.failed
    other = backup_of(Past(range(2, 31)), snapshot_at=[], logs=[range(2, 18)])
    refused = repair(damaged(14), MemorySink(damaged(14)), earlier=[other])
    assert refused.repairs[0].kind is Repair.SPLIT


def test_what_is_lost_in_part_is_given_back_in_part() -> None:
    view = backup_of(PAST, snapshot_at=[0], logs=LOGS)
    content = view.objects[view.logs[1]]
    start = 16 + sum(len(PAST.records[zxid]) for zxid in (11, 12))
    end = start + sum(len(PAST.records[zxid]) for zxid in range(13, 18))
    view.objects[view.logs[1]] = content[:start] + bytes(end - start) + content[end:]
    earlier = backup_of(PAST, snapshot_at=[], logs=[range(1, 16)])
    done = repair(view, MemorySink(view), earlier=[earlier])
    assert done.lost == ((16, 17),)
    assert [(log.first, log.last) for log in done.repairs[0].logs] == [(11, 15), (18, 20)]


def test_a_header_is_written_anew_and_nothing_is_lost() -> None:
    view = backup_of(PAST, snapshot_at=[0], logs=LOGS)
    original = view.objects[view.logs[1]]
    view.objects[view.logs[1]] = b"garbage-garbage-" + original[16:]
    sink = MemorySink(view)
    done = repair(view, sink)
    assert done.repairs[0].kind is Repair.HEADER
    assert list(sink.made.values()) == [original]
    assert not done.lost
    assert not done.verified.failed


def test_bytes_behind_the_last_record_are_trimmed_and_nothing_is_lost() -> None:
    view = backup_of(PAST, snapshot_at=[0], logs=LOGS)
    original = view.objects[view.logs[2]]
    view.objects[view.logs[2]] = original + b"\0\0\0\0\x12\x34torn"
    sink = MemorySink(view)
    done = repair(view, sink)
    assert done.repairs[0].kind is Repair.TRIMMED
    assert list(sink.made.values()) == [original]
    assert not done.lost


def test_an_object_that_is_gone_comes_back_from_who_has_its_last_record() -> None:
    view = backup_of(PAST, snapshot_at=[0], logs=LOGS)
    original = view.objects.pop(view.logs[1])
    earlier = backup_of(PAST, snapshot_at=[], logs=[range(1, 31)])
    sink = MemorySink(view)
    done = repair(view, sink, earlier=[earlier], level=Level.REPLAY)
    assert done.repairs[0].kind is Repair.SPLICED
    assert list(sink.made.values()) == [original]
    assert not done.verified.failed


def test_a_snapshot_comes_back_from_an_earlier_backup_or_is_dropped() -> None:
    view = backup_of(PAST, snapshot_at=[0, 10], logs=LOGS)
    bad = view.snapshots[1]
    earlier = MemoryView(snapshots=[bad], objects={bad: view.objects[bad]})
    view.objects[bad] = view.objects[bad][:-3] + b"xyz"
    done = repair(view, MemorySink(view), earlier=[earlier], level=Level.REPLAY)
    assert (done.copied, done.dropped) == ((bad,), ())
    assert not done.verified.failed
    alone = repair(view, MemorySink(view), level=Level.REPLAY)
    assert (alone.copied, alone.dropped) == ((), (bad,))
    assert alone.verified.restorable


@given(data=st.data())
def test_whatever_is_destroyed_what_comes_back_was_written_and_the_rest_is_named(data: st.DataObject) -> None:
    view = backup_of(PAST, snapshot_at=[0], logs=LOGS)
    log = data.draw(st.sampled_from(view.logs))
    content = bytearray(view.objects[log])
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(content) - 1))
        content[start : start + data.draw(st.integers(1, 200))] = data.draw(st.binary(max_size=60))
        if not content:
            break
    view.objects[log] = bytes(content)
    held = data.draw(st.integers(0, 30))
    earlier = backup_of(PAST, snapshot_at=[], logs=[range(1, held + 1)] if held else [])
    sink = MemorySink(view)
    done = repair(view, sink, earlier=[earlier])
    found = {kept: made for kept, made in sink.made.items() if isinstance(kept, ArchivedLog)}
    for kept, made in found.items():
        assert made == header() + b"".join(PAST.records[zxid] for zxid in range(kept.first, kept.last + 1))
    if done.repairs:
        back = {zxid for kept in found for zxid in range(kept.first, kept.last + 1)}
        lost = {zxid for first, last in done.lost for zxid in range(first, last + 1)}
        assert back | lost == set(range(log.first, log.last + 1))
        assert not back & lost
