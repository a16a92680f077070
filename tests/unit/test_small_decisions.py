"""Small pure decisions: ids, ranges, tiling, states, leases, verdicts, samples, garbage."""

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkeep.errors import UnknownBackup, UsageError
from logkeep.model.ids import BackupId, choose_id, next_id, source_name
from logkeep.model.ranges import Range, tile
from logkeep.repository.backups.states import StateName, group_state
from logkeep.repository.backups.verdicts import verdicts
from logkeep.repository.chain.layout import VerificationName
from logkeep.repository.chain.lease import NOTHING_SEEN, LeaseDocument, LeaseState, lease_state
from logkeep.repository.chain.owner import is_dead, this_process
from logkeep.repository.upkeep.garbage import GarbageRules, decide
from logkeep.repository.upkeep.marks import StoredMark
from logkeep.repository.verify.checks import VerifySample
from logkeep.store.base import ObjectInfo

NOW = datetime(2026, 11, 15, 10, 30, tzinfo=UTC)
IDS = [BackupId(i) for i in (20261114020000, 20261115020000, 20261115030000)]


def test_the_default_id_is_the_time_and_always_grows() -> None:
    assert next_id(NOW, 0) == 20261115103000
    assert next_id(NOW, 20261115103000) == 20261115103001
    assert next_id(NOW, 99999999999999) == 100000000000000


def test_ids_by_number_prefix_and_latest() -> None:
    assert choose_id("latest", IDS) == IDS[-1]
    assert choose_id("20261114", IDS) == IDS[0]
    assert choose_id(str(IDS[1]), IDS) == IDS[1]
    with pytest.raises(UnknownBackup, match="fits 2 backups: 20261115020000, 20261115030000"):
        choose_id("20261115", IDS)
    for nothing in ("7", "x", "-1", ""):
        with pytest.raises(UnknownBackup):
            choose_id(nothing, IDS)
    with pytest.raises(UnknownBackup, match="no backup yet"):
        choose_id("latest", [])


@pytest.mark.parametrize("bad", ["", ".", "..", "a/b", "-x", ".x", "a b", "x" * 65, "ä"])
def test_source_names_cannot_lead_anywhere(bad: str) -> None:
    with pytest.raises(UsageError):
        source_name(bad)


@given(st.integers(0, 20), st.lists(st.integers(0, 20), max_size=6), st.data())
def test_pieces_cut_from_a_span_tile_it(length: int, cuts: list[int], data: st.DataObject) -> None:
    span = Range(5, 5 + length)
    edges = sorted({5, 5 + length, *(5 + c % (length + 1) for c in cuts)})
    pieces = [Range(a, b) for a, b in pairwise(edges)]
    assert tile(span, data.draw(st.permutations(pieces))).exact
    for missing in pieces:
        assert tile(span, [p for p in pieces if p != missing]).gaps == (missing,)
    if pieces:
        assert tile(span, [*pieces, pieces[0]]).overlaps


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=8))
def test_tiling_counts_every_position(pairs: list[tuple[int, int]]) -> None:
    pieces = [Range(min(p), max(p)) for p in pairs]
    span = Range(4, 25)
    times = [sum(p.start <= x < p.end for p in pieces) for x in range(4, 25)]
    found = tile(span, pieces)
    assert sum(map(len, found.gaps)) == times.count(0)
    assert bool(found.overlaps) == any(t > 1 for t in times)


S = StateName


@pytest.mark.parametrize(
    ("members", "group"),
    [
        ([S.COMPLETED, S.COMPLETED], S.COMPLETED),
        ([S.COMPLETED, S.FAILED], S.FAILED),
        ([S.ONGOING, S.FAILED], S.FAILED),
        ([S.COMPLETED, S.ONGOING], S.ONGOING),
        ([S.DOES_NOT_EXIST, S.ONGOING], S.ONGOING),
        ([S.COMPLETED, S.DOES_NOT_EXIST], S.DOES_NOT_EXIST),
        ([S.DOES_NOT_EXIST], S.DOES_NOT_EXIST),
        ([], S.DOES_NOT_EXIST),
    ],
)
def test_the_state_of_a_group(members: list[StateName], group: StateName) -> None:
    assert group_state(members) is group


HERE = this_process("me")


def lease(**changes: object) -> LeaseDocument:
    owner = msgspec.structs.replace(HERE, host="elsewhere", run="other")
    document = LeaseDocument(
        repository="r", source="s", owner=owner, operation="backup", epoch=1,
        acquired="2026-11-15T10:00:00.000Z", expires="2026-11-15T10:05:00.000Z", head=NOTHING_SEEN,
    )  # fmt: skip
    return msgspec.structs.replace(document, **changes)


@pytest.mark.parametrize(
    ("document", "minute", "expected"),
    [
        (lease(), 4.9, LeaseState.HELD),
        (lease(), 6.5, LeaseState.HELD),
        (lease(), 6.8, LeaseState.EXPIRED),
        (lease(released=True), 1, LeaseState.FREE),
        (lease(owner=HERE), 1, LeaseState.HELD),
        (lease(owner=msgspec.structs.replace(HERE, born="1")), 1, LeaseState.OWNER_DEAD),
    ],
)
def test_the_standing_of_a_lease(document: LeaseDocument, minute: float, expected: LeaseState) -> None:
    now = datetime(2026, 11, 15, 10, tzinfo=UTC) + timedelta(minutes=minute)
    assert lease_state(document, now, HERE) is expected


@pytest.mark.parametrize("field", ["host", "boot", "namespace"])
def test_a_missing_process_elsewhere_proves_nothing(field: str) -> None:
    dead = msgspec.structs.replace(HERE, pid=2**22 - 1, born="1")
    assert is_dead(dead, HERE)
    assert not is_dead(msgspec.structs.replace(dead, **{field: "other"}), HERE)
    assert not is_dead(msgspec.structs.replace(dead, boot=""), msgspec.structs.replace(HERE, boot=""))


def looked(*history: tuple[str, str]) -> bool:
    found = [
        VerificationName(BackupId(1), f"2026111{n}T", level, verdict) for n, (level, verdict) in enumerate(history)
    ]
    return verdicts(found)[BackupId(1)].damaged


def test_damage_stands_until_a_look_as_deep_finds_none() -> None:
    assert looked(("data", "damaged"))
    assert looked(("data", "damaged"), ("files", "good"))
    assert not looked(("data", "damaged"), ("data", "good"))
    assert not looked(("files", "damaged"), ("data", "good"))
    assert looked(("data", "good"), ("files", "damaged"))
    assert looked(("from-the-future", "damaged"), ("data", "good"))
    assert not looked(("files", "good"))


def test_a_clock_that_is_ahead_hides_no_damage_that_is_found_later() -> None:
    def stored(when: str, verdict: str, hour: int) -> VerificationName:
        return VerificationName(BackupId(1), when, "data", verdict, datetime(2026, 11, 15, hour, tzinfo=UTC))

    ahead = stored("20301115T090000000000Z", "good", 10)
    damage, repaired = (stored(f"20261115T{h}0000000000Z", v, h) for h, v in ((11, "damaged"), (12, "good")))
    assert verdicts([ahead, damage])[BackupId(1)].damaged
    assert not verdicts([ahead, damage, repaired])[BackupId(1)].damaged
    assert verdicts([ahead])[BackupId(1)].time == datetime(2026, 11, 15, 10, tzinfo=UTC)
    assert not verdicts([stored("20301115T090000000000Z", "damaged", 10), repaired])[BackupId(1)].damaged


@pytest.mark.parametrize("hour", [10, 11, 12])
def test_a_copied_repository_keeps_the_order_of_its_verifications(hour: int) -> None:
    """All objects of a copy may be stored at one time, or in another order, long after they were written."""
    found = [
        VerificationName(
            BackupId(1), "20261115T110000000000Z", "data", "damaged", datetime(2026, 12, 1, 11, tzinfo=UTC)
        ),
        VerificationName(
            BackupId(1), "20261115T120000000000Z", "data", "good", datetime(2026, 12, 1, hour, tzinfo=UTC)
        ),
    ]
    assert not verdicts(found)[BackupId(1)].damaged


@given(st.integers(1, 6), st.integers(1, 30), st.dates(date(2026, 1, 1), date(2027, 1, 1)))
def test_a_sample_of_every_day_is_everything_in_time(part: int, of: int, day: date) -> None:
    sample = VerifySample(min(part, of), of)
    days = [day + timedelta(days=n) for n in range(-(-sample.of // sample.part))]
    assert all(any(sample.takes(f"{t:016x}", d) for d in days) for t in range(60))


def info(name: str, age_h: float) -> ObjectInfo:
    return ObjectInfo(name, 10, NOW - timedelta(hours=age_h), "v")


def test_garbage_is_marked_when_old_and_swept_when_marked_long_enough() -> None:
    marks = [
        StoredMark("m1", NOW - timedelta(hours=5), frozenset({"a", "live-again"})),
        StoredMark("m2", NOW - timedelta(hours=3), frozenset({"b"})),
    ]
    garbage = [info("a", 30), info("b", 30), info("old", 25), info("young", 23)]
    plan = decide(garbage, marks, GarbageRules(), NOW)
    assert [o.name for o in plan.to_sweep] == ["a"]
    assert [o.name for o in plan.to_mark] == ["old"]
    assert (plan.waiting, plan.spent_marks) == (2, ("m1",))
