"""Faults that a review found, each held by the sequence of steps that showed it."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from logkeep.errors import Damaged, LogkeepError, StoreUnreachable
from logkeep.model.ids import BackupId
from logkeep.model.time import random_token, utc_now
from logkeep.repository.backups.source import source_names, view
from logkeep.repository.backups.states import Failed
from logkeep.repository.backups.verdicts import GOOD, verdicts
from logkeep.repository.backups.verification import stored_verifications
from logkeep.repository.chain import layout
from logkeep.repository.chain.actions import DeleteAction, HoldAction
from logkeep.repository.chain.commits import SourceRef, read_chain, read_whole_chain
from logkeep.repository.chain.owner import this_process
from logkeep.repository.chain.write_session import pin, writing
from logkeep.repository.upkeep.garbage import GarbageRules, collect, plan_garbage, store_time
from logkeep.repository.upkeep.prune import delete
from logkeep.repository.upkeep.repair import repair
from tests.corruption.test_damage import DATA, Repo, flip
from tests.crash.points import AT_ONCE, run_backup
from tests.support.faults.plan import Fault
from tests.support.faults.store import FaultyStore
from tests.support.scripted.backup import copy_unit, expected, restored
from tests.support.scripted.unfinished import leave_unfinished


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path / "repo")


def mend(repo: Repo, *, accept_loss: bool = True) -> None:
    repair(repo.place, utc_now, random_token, timedelta(minutes=5), accept_loss=accept_loss, dry_run=False)


def test_a_repair_keeps_times_holds_and_deletions_of_what_it_brings_back(repo: Repo) -> None:
    third = run_backup(repo.place, {0: 20, 1: 9})
    pin(repo.place, HoldAction(repo.ids[1], "legal"), utc_now, random_token)
    with writing(repo.place, "delete", utc_now, random_token) as session:
        session.commit(DeleteAction((third,), "unwanted"))
    before = read_chain(repo.place)
    flip(repo.root / layout.commit("prod", 1))
    mend(repo)
    after = read_chain(repo.place)
    held = {e.id: (e.committed, e.hold) for e in after.completed}
    assert {e.id: (e.committed, e.hold) for e in before.completed}[repo.ids[1]] == held[repo.ids[1]]
    assert third not in held, "a deleted backup has come back"
    assert repo.ids[0] in held, "its manifest was whole"


def test_a_lost_commit_that_comes_back_after_a_repair_does_no_harm(repo: Repo) -> None:
    lost = repo.root / layout.commit("prod", 2)
    whole = lost.read_bytes()
    lost.unlink()
    mend(repo)
    told = read_whole_chain(repo.place)
    lost.write_bytes(whole)
    assert read_chain(repo.place) == told
    newer = run_backup(repo.place, {0: 20, 1: 9})
    assert restored(repo.place, newer) == expected({0: 20, 1: 9})


def test_a_pin_does_not_take_the_name_of_a_lost_commit(repo: Repo) -> None:
    (repo.root / layout.commit("prod", 2)).unlink()
    with pytest.raises(Damaged, match="was committed before"):
        pin(repo.place, HoldAction(repo.ids[0], "x"), utc_now, random_token)
    assert not (repo.root / layout.commit("prod", 2)).exists()


def test_another_commit_in_the_place_of_one_that_was_seen_is_noticed(repo: Repo, tmp_path: Path) -> None:
    chain = repo.root / "sources/prod/commits"
    for path in chain.iterdir():
        path.unlink()
    lease = repo.root / layout.lease("prod")
    remembered = lease.read_bytes()
    lease.unlink()
    run_backup(repo.place, {0: 4})
    run_backup(repo.place, {0: 5})
    run_backup(repo.place, {0: 6})
    lease.unlink()
    lease.write_bytes(remembered)
    with pytest.raises(Damaged, match="another commit than the one that was seen"):
        run_backup(repo.place, {0: 7})


def test_a_lease_dated_in_the_future_does_not_make_garbage_old(repo: Repo) -> None:
    future = datetime(2031, 1, 1, tzinfo=UTC).timestamp()
    os.utime(repo.root / layout.lease("prod"), (future, future))
    with writing(repo.place, "gc", utc_now, random_token) as session:
        assert abs(store_time(session) - utc_now()) < timedelta(minutes=1)


def test_clocks_that_disagree_stop_a_collection(repo: Repo) -> None:
    def ahead() -> datetime:
        return utc_now() + timedelta(hours=2)

    with (
        writing(repo.place, "gc", ahead, random_token) as session,
        pytest.raises(LogkeepError, match="s apart"),
    ):
        collect(session, AT_ONCE)


def test_a_backup_without_segments_is_a_backup(repo: Repo) -> None:
    for ends in ({}, {0: 0}, {0: 12, 1: 9}, {}):
        backup_id = run_backup(repo.place, ends)
        assert restored(repo.place, backup_id) == expected(ends)
        assert repo.verify(backup_id).document.verdict == GOOD


@pytest.mark.parametrize("kind", ["mark", "verification", "hold", "lease", "request", "receipt"])
def test_no_damaged_side_object_stops_reading_or_backing_up(repo: Repo, kind: str) -> None:
    left_behind = BackupId(90000000000000)
    with writing(repo.place, "gc", utc_now, random_token) as session:
        collect(session, GarbageRules(age=timedelta(0)))
    if kind == "verification":
        flip(repo.file(DATA))
        repo.verify(repo.ids[0])
        flip(repo.file(DATA))
    if kind in {"request", "receipt"}:
        leave_unfinished(repo.place, left_behind, copy_unit)
    name = {
        "mark": "sources/prod/garbage/*.json",
        "verification": "sources/prod/verifications/*/*.damaged.*.json",
        "hold": "holds/prod/*.json",
        "lease": "leases/prod.json",
        "request": f"sources/prod/backups/{left_behind:020d}/request.json",
        "receipt": f"sources/prod/backups/{left_behind:020d}/journal/*.json",
    }[kind]
    if kind == "hold":
        (repo.root / "holds/prod").mkdir(parents=True)
        (repo.root / f"holds/prod/{repo.ids[0]:020d}.0123456789abcdef.json").write_bytes(b"{}\n")
    path = sorted(repo.root.glob(name))[0]
    flip(path)
    seen = view(repo.place, utc_now(), this_process("reader"))
    assert [e.id for e in seen.folded.completed] == repo.ids
    assert seen.states()
    if kind == "lease":
        assert seen.warnings
        mend(repo, accept_loss=False)
    newer = run_backup(repo.place, {0: 20, 1: 9}, resumed=kind in {"request", "receipt"})
    assert restored(repo.place, newer) == expected({0: 20, 1: 9})
    with writing(repo.place, "gc", utc_now, random_token) as session:
        collect(session, AT_ONCE)
    for backup_id in (repo.ids[0], newer):
        assert repo.verify(backup_id).document.verdict == GOOD
    mend(repo, accept_loss=False)
    if kind in {"mark", "verification", "hold"}:
        assert not path.exists(), "repair leaves what cannot be read"


def test_an_object_that_grew_is_copied_again(repo: Repo) -> None:
    before = set(repo.root.glob(DATA))
    leave_unfinished(repo.place, BackupId(90000000000000), copy_unit)
    grown = min(set(repo.root.glob(DATA)) - before)
    grown.write_bytes(grown.read_bytes() + b"x")
    newer = run_backup(repo.place, {0: 20, 1: 9}, resumed=True)
    assert restored(repo.place, newer) == expected({0: 20, 1: 9})


def test_a_committed_backup_is_reported_as_committed_whatever_comes_after(repo: Repo) -> None:
    """The store goes away right after the commit object is there."""
    gone = False

    def plan(number: int, operation: str, name: str) -> Fault | None:
        nonlocal gone
        if gone and operation == "replace":
            return Fault(before=StoreUnreachable("gone"))
        gone = gone or (operation == "get" and name == layout.commit("prod", 3))
        return None

    place = SourceRef(FaultyStore(repo.place.store, plan), repo.place.repository, "prod")
    assert run_backup(place, {0: 20, 1: 9}) == read_chain(repo.place).completed[-1].id


def test_a_healed_object_is_not_held_against_new_backups(repo: Repo) -> None:
    path = repo.file(DATA)
    flip(path)
    assert repo.verify(repo.ids[0]).also_damaged == (repo.ids[1],)
    with writing(repo.place, "delete", utc_now, random_token) as session:
        delete(session, [repo.ids[0]], "x")
    flip(path)
    assert repo.verify(repo.ids[1]).document.verdict == GOOD
    newer = run_backup(repo.place, {0: 20, 1: 9})
    known = verdicts(said for said, _ in stored_verifications(repo.place))
    assert BackupId(newer) not in known


def test_a_pin_during_a_prune_is_not_damage(repo: Repo) -> None:
    with writing(repo.place, "prune", utc_now, random_token) as session:
        pin(repo.place, HoldAction(repo.ids[0], "now"), utc_now, random_token)
        plan_garbage(session, AT_ONCE)
        assert session.folded.completed[0].hold == "now"


def test_a_stray_file_is_not_a_source(repo: Repo) -> None:
    (repo.root / "sources/README").write_text("hello")
    assert source_names(repo.place.store) == ["prod"]


def test_an_unreadable_request_is_a_failed_backup(repo: Repo) -> None:
    left = BackupId(90000000000000)
    leave_unfinished(repo.place, left, copy_unit)
    flip(repo.root / layout.request("prod", left))
    state = view(repo.place, utc_now(), this_process("reader")).state(left)
    assert isinstance(state, Failed)
    assert "cannot be read" in state.reason
