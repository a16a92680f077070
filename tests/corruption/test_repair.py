"""Repair rebuilds what can be rebuilt by listing, and goes on after a loss only when told to."""

from datetime import timedelta
from pathlib import Path

import pytest

from logkeep.errors import Damaged
from logkeep.model.time import random_token, utc_now
from logkeep.repository.backups.source import read_facts
from logkeep.repository.chain import layout
from logkeep.repository.chain.actions import HoldAction
from logkeep.repository.chain.commits import CHECKPOINT_EVERY, read_chain, read_whole_chain
from logkeep.repository.chain.format import open_format
from logkeep.repository.chain.write_session import writing
from logkeep.repository.upkeep.garbage import GarbageRules, collect
from logkeep.repository.upkeep.prune import delete
from logkeep.repository.upkeep.repair import RepositoryRepairStep, repair, repair_format
from tests.corruption.test_damage import ENDS, Repo, flip
from tests.crash.points import run_backup
from tests.support.scripted.backup import expected, restored
from tests.support.scripted.merge import merge_neighbours


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path / "repo")


def mend(repo: Repo, *, accept_loss: bool = False, dry_run: bool = False) -> list[RepositoryRepairStep]:
    return repair(repo.place, utc_now, random_token, timedelta(minutes=5), accept_loss=accept_loss, dry_run=dry_run)


def test_a_whole_repository_needs_nothing(repo: Repo) -> None:
    assert mend(repo) == []


def test_the_format_object_is_rewritten_from_its_copy(repo: Repo) -> None:
    flip(repo.root / layout.FORMAT)
    document = open_format(repo.place.store).document
    assert [s.where for s in repair_format(repo.place.store, document, dry_run=True)] == [layout.FORMAT]
    assert open_format(repo.place.store).warnings, "a dry run changes nothing"
    list(repair_format(repo.place.store, document, dry_run=False))
    assert not open_format(repo.place.store).warnings


def test_a_lost_source_document_is_rebuilt_from_a_manifest(repo: Repo) -> None:
    (repo.root / layout.source_document("prod")).unlink()
    before = read_chain(repo.place)
    assert [s.where for s in mend(repo)] == [layout.source_document("prod")]
    facts = read_facts(repo.place)
    assert facts is not None
    assert facts.identity == {"id": "s-1"}
    assert read_chain(repo.place).completed == before.completed


def test_a_broken_checkpoint_is_removed_and_made_anew(repo: Repo) -> None:
    with writing(repo.place, "hold", utc_now, random_token) as session:
        for _ in range(CHECKPOINT_EVERY):
            session.commit(HoldAction(session.folded.completed[0].id, "again"))
    run_backup(repo.place, {0: 10, 1: 8})
    path = repo.file("sources/prod/checkpoints/*.json")
    flip(path)
    assert read_chain(repo.place) == read_whole_chain(repo.place), "a cache never decides"
    assert [s.where for s in mend(repo)] == [repo.name(path)]
    assert not path.exists()
    assert list(repo.root.glob("sources/prod/checkpoints/*.json"))
    assert read_chain(repo.place) == read_whole_chain(repo.place)


def test_an_unreadable_lease_does_not_lock_the_source_for_ever(repo: Repo) -> None:
    flip(repo.root / layout.lease("prod"))
    with pytest.raises(Damaged):
        run_backup(repo.place, {0: 20, 1: 9})
    mend(repo)
    run_backup(repo.place, {0: 20, 1: 9})


@pytest.mark.parametrize("damage", [Path.unlink, flip], ids=["removed", "flipped"])
@pytest.mark.parametrize("generation", [1, 2])
def test_a_lost_commit_is_gone_on_from_only_when_accepted(repo: Repo, damage: object, generation: int) -> None:
    assert callable(damage)
    damage(repo.root / layout.commit("prod", generation))
    with pytest.raises(Damaged, match="generation") as refused:
        mend(repo)
    assert "--accept-loss" in refused.value.remedy
    planned = mend(repo, accept_loss=True, dry_run=True)
    done = mend(repo, accept_loss=True)
    assert [s.what for s in planned] == [s.what for s in done]
    completed = [e.id for e in read_chain(repo.place).completed]
    assert completed == repo.ids, "both manifests were intact, so both backups are back"
    for backup_id, ends in zip(repo.ids, ENDS, strict=True):
        assert restored(repo.place, backup_id) == expected(ends)
    newer = run_backup(repo.place, {0: 20, 1: 9})
    assert restored(repo.place, newer) == expected({0: 20, 1: 9})
    assert mend(repo) == [], "nothing is left to repair"


def test_a_second_loss_is_gone_on_from_like_the_first(repo: Repo) -> None:
    flip(repo.root / layout.commit("prod", 2))
    mend(repo, accept_loss=True)
    third = run_backup(repo.place, {0: 20, 1: 9})
    flip(repo.root / layout.commit("prod", read_chain(repo.place).generation))
    with pytest.raises(Damaged):
        read_chain(repo.place)
    mend(repo, accept_loss=True)
    assert [e.id for e in read_chain(repo.place).completed] == [*repo.ids, third]
    assert read_chain(repo.place) == read_whole_chain(repo.place)


def test_a_loss_that_a_checkpoint_covers_is_gone_on_from(repo: Repo) -> None:
    with writing(repo.place, "gc", utc_now, random_token) as session:
        session.fence("checkpoint")
    (repo.root / layout.commit("prod", 1)).unlink()
    mend(repo, accept_loss=True)
    assert [e.id for e in read_chain(repo.place).completed] == repo.ids
    newer = run_backup(repo.place, {0: 20, 1: 9})
    assert restored(repo.place, newer) == expected({0: 20, 1: 9})


@pytest.mark.parametrize("lost", [(1,), (2,), (1, 2)], ids=str)
def test_backups_that_are_brought_back_are_read_from_what_replaced_their_parts(
    repo: Repo, lost: tuple[int, ...]
) -> None:
    """A merge after them is intact, and what it replaced is gone."""
    with writing(repo.place, "optimize", utc_now, random_token) as session:
        assert merge_neighbours(session, 0) is not None
    at_once = GarbageRules(age=timedelta(0), interval=timedelta(0))
    for _ in range(2):
        with writing(repo.place, "gc", utc_now, random_token) as session:
            collect(session, at_once)
    for generation in lost:
        (repo.root / layout.commit("prod", generation)).unlink()
    mend(repo, accept_loss=True)
    assert [e.id for e in read_chain(repo.place).completed] == repo.ids
    for backup_id, ends in zip(repo.ids, ENDS, strict=True):
        assert restored(repo.place, backup_id) == expected(ends)
    with writing(repo.place, "delete", utc_now, random_token) as session:
        delete(session, repo.ids[:1], "the replacement stays as long as one backup needs it")
    assert restored(repo.place, repo.ids[1]) == expected(ENDS[1])


def test_a_hold_on_a_backup_that_is_brought_back_stays(repo: Repo) -> None:
    with writing(repo.place, "hold", utc_now, random_token) as session:
        session.commit(HoldAction(repo.ids[1], "audit"))
    (repo.root / layout.commit("prod", 2)).unlink()
    mend(repo, accept_loss=True)
    assert [e.hold for e in read_chain(repo.place).completed] == [None, "audit"]


def test_an_earlier_loss_after_a_repair_takes_no_backup_away(repo: Repo) -> None:
    """The commits after the first loss are there twice then: as they were, and replayed with what was brought back."""
    ids = [*repo.ids, *(run_backup(repo.place, {0: 20 + n, 1: 9}) for n in range(3))]
    (repo.root / layout.commit("prod", 4)).unlink()
    mend(repo, accept_loss=True)
    assert [e.id for e in read_chain(repo.place).completed] == ids
    (repo.root / layout.commit("prod", 2)).unlink()
    mend(repo, accept_loss=True)
    assert [e.id for e in read_chain(repo.place).completed] == ids
    assert read_chain(repo.place) == read_whole_chain(repo.place)
