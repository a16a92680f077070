"""What one member lacks and another holds is not lost; what nobody holds is, whatever a snapshot covers."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkeep.model.findings import Finding
from logkeep.zookeeper.backup.other_members import OtherMembers, other_members_of
from logkeep.zookeeper.backup.round_rules import RoundHole
from tests.support.zookeeper.handmade_directories import MadeServer, damaged_in
from tests.support.zookeeper.repositories import archived, archived_all, new_place


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ({}, ()),
        ({"b": [(5, 8)]}, ("b",)),
        ({"b": [(1, 9)], "c": [(20, 30)]}, ("b",)),
        ({"b": [(5, 6)], "c": [(7, 8)]}, ("b", "c")),
        ({"b": [(1, 5), (6, 6)], "c": [(6, 20)]}, ("b", "c")),
        ({"b": [(6, 8)]}, ()),
        ({"b": [(5, 7)]}, ()),
        ({"b": [(1, 5), (7, 9)]}, ()),
    ],
)
def test_who_holds_five_to_eight(runs: dict[str, list[tuple[int, int]]], expected: tuple[str, ...]) -> None:
    assert OtherMembers(runs).holders(RoundHole(5, 8)) == expected


def test_a_member_is_not_its_own_witness() -> None:
    assert other_members_of("a", ({"a": [(1, 9)]}, {"b": [(1, 3)]}, {"b": [(4, 9)]})).runs == {"b": [(1, 3), (4, 9)]}


_RUN = st.tuples(st.integers(0, 12), st.integers(0, 12)).map(lambda ends: (min(ends), max(ends)))


@given(st.dictionaries(st.sampled_from("bcd"), st.lists(_RUN, max_size=4)), _RUN)
def test_someone_is_named_only_where_every_number_is_held(
    runs: dict[str, list[tuple[int, int]]], missing: tuple[int, int]
) -> None:
    held = {zxid for some in runs.values() for first, last in some for zxid in range(first, last + 1)}
    wanted = set(range(missing[0], missing[1] + 1))
    found = OtherMembers(runs).holders(RoundHole(*missing))
    assert bool(found) == (wanted <= held)
    touching = {n for n, some in runs.items() for first, last in some if wanted & set(range(first, last + 1))}
    assert set(found) == (touching if wanted <= held else set())


@pytest.fixture
def synced(tmp_path: Path) -> MadeServer:
    """Its leader sent it a snapshot at 8: it logged 1 to 3, then 9 and 10."""
    made = MadeServer(tmp_path / "synced", zxid=10, mode="follower")
    made.snapshot(0)
    made.snapshot(8)
    made.log([1, 2, 3])
    made.log([9, 10])
    return made


def another(home: Path, zxids: range) -> MadeServer:
    made = MadeServer(home, zxid=zxids[-1], mode="leader")
    made.snapshot(zxids[0] - 1)
    made.log(zxids)
    return made


def codes(findings: Sequence[Finding]) -> dict[str, str]:
    return {finding.code: finding.what for finding in findings}


def test_what_nobody_holds_is_lost_although_a_snapshot_covers_it(synced: MadeServer) -> None:
    done = archived(new_place(), synced)
    assert (done.exit_code, set(codes(done.findings))) == (21, {"hole"})


def test_what_another_member_holds_is_not_lost(synced: MadeServer, tmp_path: Path) -> None:
    done = archived_all(new_place(), [synced, another(tmp_path / "other", range(1, 11))])
    assert (done.exit_code, codes(done.findings)) == (
        0,
        {"held-by-another": "no log holds 0x4 to 0x8; member zk2 has them"},
    )


def test_another_member_that_holds_a_part_is_not_enough(synced: MadeServer, tmp_path: Path) -> None:
    done = archived_all(new_place(), [synced, another(tmp_path / "other", range(6, 11))])
    assert (done.exit_code, set(codes(done.findings))) == (21, {"hole"})


def test_what_an_earlier_backup_has_of_another_member_counts(synced: MadeServer, tmp_path: Path) -> None:
    place = new_place()
    assert archived(place, another(tmp_path / "other", range(1, 11)), name="zk2").exit_code == 0
    done = archived(place, synced, name="zk1")
    assert (done.exit_code, set(codes(done.findings))) == (0, {"held-by-another"})


def test_a_new_history_has_nothing_of_an_earlier_one(synced: MadeServer, tmp_path: Path) -> None:
    place = new_place()
    archived(place, another(tmp_path / "other", range(1, 11)), name="zk2")
    done = archived(place, synced, name="zk1", new_history=True)
    assert (done.exit_code, set(codes(done.findings))) == (21, {"hole"})


def test_damage_that_another_member_makes_good_is_told_and_is_no_loss(tmp_path: Path) -> None:
    hurt, whole = another(tmp_path / "hurt", range(1, 11)), another(tmp_path / "whole", range(1, 11))
    damaged_in(hurt.log_dir / "log.1", 4)
    assert archived(new_place(), hurt).exit_code == 21
    done = archived_all(new_place(), [hurt, whole])
    assert (done.exit_code, set(codes(done.findings))) == (2, {"held-elsewhere"})
    assert "member zk2 has them, nothing is lost" in codes(done.findings)["held-elsewhere"]


def test_a_tail_that_its_server_may_rewrite_holds_nothing_for_others(synced: MadeServer, tmp_path: Path) -> None:
    """The next backup of that member begins before it, so nobody would have it."""
    place, other = new_place(), another(tmp_path / "other", range(1, 11))
    other.zxid = None
    assert archived(place, other, name="zk2").exit_code == 2
    done = archived(place, synced, name="zk1")
    assert (done.exit_code, set(codes(done.findings))) == (21, {"hole"})


def test_damage_across_the_end_of_an_epoch_is_a_loss_whoever_has_the_next_one(tmp_path: Path) -> None:
    """How many transactions the damaged place had of the first epoch nobody knows."""
    epoch = 1 << 32
    hurt = MadeServer(tmp_path / "hurt", zxid=epoch + 4, mode="leader")
    hurt.snapshot(0)
    hurt.log([1, 2, 3, 4, 5, *range(epoch + 1, epoch + 5)])
    damaged_in(hurt.log_dir / "log.1", 4, 5)
    joined = MadeServer(tmp_path / "joined", zxid=epoch + 4, mode="follower")
    joined.snapshot(epoch)
    joined.log(range(epoch + 1, epoch + 5))
    done = archived_all(new_place(), [hurt, joined])
    assert (done.exit_code, "lost-transactions" in codes(done.findings)) == (21, True)
    assert "held-elsewhere" not in codes(done.findings)
