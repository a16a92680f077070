"""Plans of restores, held against a slow judge that knows what really happened."""

from hypothesis import given
from hypothesis import strategies as st

from logkeep.formats.zookeeper.names import counter_of, epoch_of
from logkeep.model.segments import Proof
from logkeep.zookeeper.model.archived import ArchivedSnapshot
from logkeep.zookeeper.timeline.holdings import FIRST_EVER, BorderProof
from logkeep.zookeeper.timeline.plan import NO_DIGEST, RestorePath, RestoreRefused, ToEnd, ToTime, ToZxid, plan
from logkeep.zookeeper.timeline.reachable import reaches_of
from logkeep.zookeeper.timeline.timeline import line_of
from tests.property.zookeeper_histories import QUORUM, DictTimes, Past, pasts, records_of


def applied(path: RestorePath) -> list[int]:
    """What a replay of the path applies, one after the other."""
    return [
        zxid for piece in path.slices for zxid in records_of(piece.log) if piece.first <= zxid <= piece.last
    ]  # fmt: skip


def settled(past: Past, snapshot: ArchivedSnapshot) -> int | None:
    """Where the tree of a snapshot is exact, from its own words or a bound."""
    if snapshot.fuzzy_end is not None:
        return snapshot.fuzzy_end
    later = [s.zxid for s in past.holdings.snapshots if s.member == snapshot.member and s.zxid > snapshot.zxid]
    bounds = [bound for bound in (snapshot.bound, *later) if bound is not None]
    return min(bounds) if bounds else None


def witnesses(past: Past, before: int, after: int) -> int:
    """How many members have one right behind the other."""
    return len({log.member for log in past.holdings.logs if (before, after) in log.borders})


def sure_run(past: Past, start: int, until: int) -> bool:
    """Every transaction in between is held, and every end of an epoch is seen by a majority."""
    run = past.true_run(start, until)
    held = {zxid for log in past.holdings.logs for zxid in records_of(log)}
    previous = start
    for zxid in run:
        inside = epoch_of(previous) == epoch_of(zxid)
        beginning = previous == 0 and zxid in FIRST_EVER
        if zxid not in held:
            return False
        if not inside and not beginning and witnesses(past, previous, zxid) < _needed(past):
            return False
        previous = zxid
    return True


def _needed(past: Past) -> int:
    return 1 if len(past.holdings.members) == 1 else QUORUM


def starts(past: Past) -> list[tuple[int, int]]:
    """Where a replay can begin, and where it is exact: snapshots, and nothing at all where the logs go back to it."""
    found = [(s.zxid, exact) for s in past.holdings.snapshots if (exact := settled(past, s)) is not None]
    first = min((log.first for log in past.holdings.logs), default=None)
    return [*found, (0, 0)] if first in FIRST_EVER else found


@given(past=pasts(), data=st.data())
def test_a_path_without_digests_is_exactly_what_happened(past: Past, data: st.DataObject) -> None:
    target = data.draw(st.sampled_from(past.committed))
    path = plan(past.holdings, ToZxid(target), DictTimes(past.times))
    if isinstance(path, RestorePath):
        assert applied(path) == past.true_run(path.base.zxid, target)
        assert path.until == target
        assert path.base.settled <= target
        assert (NO_DIGEST in path.labels) == (path.base.proof is Proof.BOUNDED)


@given(past=pasts(), data=st.data())
def test_what_is_held_and_agreed_is_not_refused(past: Past, data: st.DataObject) -> None:
    target = data.draw(st.sampled_from(past.committed))
    able = [start for start, exact in starts(past) if exact <= target and start <= target]
    if any(sure_run(past, start, target) for start in able):
        assert isinstance(plan(past.holdings, ToZxid(target), DictTimes(past.times)), RestorePath)


@given(past=pasts(members=1), data=st.data())
def test_a_lone_server_restores_all_that_lies_behind_a_snapshot_without_a_hole(past: Past, data: st.DataObject) -> None:
    target = data.draw(st.sampled_from(past.committed))
    able = [start for start, exact in starts(past) if exact <= target and start <= target]
    expected = any(sure_run(past, start, target) for start in able)
    found = plan(past.holdings, ToZxid(target), DictTimes(past.times))
    assert isinstance(found, RestorePath) >= expected
    if isinstance(found, RestorePath):
        assert applied(found) == past.true_run(found.base.zxid, target)


@given(past=pasts(digests=True), data=st.data())
def test_with_digests_a_path_is_what_happened_unless_an_end_of_an_epoch_is_left_to_them(
    past: Past, data: st.DataObject
) -> None:
    target = data.draw(st.sampled_from(past.committed))
    path = plan(past.holdings, ToZxid(target), DictTimes(past.times))
    if isinstance(path, RestorePath):
        assert path.until == target
    if isinstance(path, RestorePath) and applied(path) != past.true_run(path.base.zxid, target):
        assert any(border.proof is BorderProof.BY_DIGEST for border in path.borders)


@given(past=pasts(), time_ms=st.integers(-1, 41))
def test_a_time_gives_the_longest_run_in_which_nothing_is_later(past: Past, time_ms: int) -> None:
    path = plan(past.holdings, ToTime(time_ms), DictTimes(past.times))
    if not isinstance(path, RestorePath):
        return
    line = line_of(past.holdings, "1")
    held = sorted({z for s in line.stretches for z in range(s.first, s.last + 1)})
    later = [zxid for zxid in held if past.times.get(zxid, 0) > time_ms]
    if later:
        assert path.until < later[0]
        assert path.next_left_out is not None
        assert path.next_left_out.zxid == later[0]
        assert path.next_left_out.time_ms == past.times[later[0]]
    assert all(past.times[zxid] <= time_ms for zxid in held if zxid <= path.until)
    if path.until in past.times:
        assert path.last_restored.time_ms in (past.times[path.until], None)


@given(past=pasts(), data=st.data())
def test_a_refusal_lists_what_can_be_restored_and_all_of_it_can(past: Past, data: st.DataObject) -> None:
    times = DictTimes(past.times)
    refused = plan(past.holdings, ToZxid((9 << 32) + 77), times)
    assert isinstance(refused, RestoreRefused)
    line = line_of(past.holdings, "1") if past.holdings.histories else None
    for zxid in past.committed:
        listed = any(each.first.zxid <= zxid <= each.last.zxid for each in refused.reachable)
        if line is not None and line.holds(zxid):
            assert listed == isinstance(plan(past.holdings, ToZxid(zxid), times), RestorePath)
    for each in refused.reachable:
        assert each.first.time_ms == past.times.get(each.first.zxid) or not (line and line.holds(each.first.zxid))


@given(past=pasts())
def test_the_end_is_never_before_anything_that_is_known_of(past: Past) -> None:
    path = plan(past.holdings, ToEnd(), DictTimes(past.times))
    if not isinstance(path, RestorePath):
        return
    line = line_of(past.holdings, "1")
    assert path.until >= (line.last or 0)
    for snapshot in past.holdings.snapshots:
        known = [zxid for zxid in (snapshot.zxid, snapshot.fuzzy_end) if zxid is not None and counter_of(zxid)]
        beyond = [z for z in known if not any(first <= z <= last for first, last in line.abandoned)]
        assert all(path.until >= zxid for zxid in beyond)


@given(past=pasts(), data=st.data())
def test_what_one_member_alone_holds_needs_no_other(past: Past, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from([member.name for member in past.holdings.members]))
    target = data.draw(st.sampled_from(past.committed))
    path = plan(past.holdings, ToZxid(target), DictTimes(past.times), only={name})
    if isinstance(path, RestorePath):
        assert {piece.log.member for piece in path.slices} <= {name}
        assert path.base.member in (name, None)


@given(past=pasts())
def test_reaches_begin_where_the_tree_is_exact(past: Past) -> None:
    if not past.holdings.histories:
        return
    line = line_of(past.holdings, "1")
    for reach in reaches_of(past.holdings, line):
        assert reach.first >= reach.base.settled
        assert reach.last >= reach.first
