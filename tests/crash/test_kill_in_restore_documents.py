"""Beginning and ending a restore, killed after every store call: what was stored counts, and the rest is done again."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from logkeep.model.ids import RestoreId
from logkeep.model.time import random_token, utc_now
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.restores import (
    RestoreState,
    begin_restore,
    list_restores,
    newest_producers,
    newest_receipt,
    put_map,
    put_producers,
    put_receipt,
    read_map,
    read_plan,
    read_producers,
)
from logkeep.store.access import open_store
from logkeep.store.base import Store
from logkeep.store.local.store import LocalStore
from logkeep.store.retrying import RetryingStore, RetryLimits
from tests.crash.points import KILLED, in_child
from tests.support.faults.plan import KillAfter, Scripted, lost_ack, no_faults
from tests.support.faults.store import FaultyStore
from tests.support.scripted.restores import NEW, PRODUCERS, REPOSITORY, TOPICS, map_bytes, receipt
from tests.support.servers.s3 import S3Server


def prove(place: SourceRef, restore_id: RestoreId) -> None:
    """What a restore stores after its id is known."""
    put_producers(place, restore_id, TOPICS, PRODUCERS, random_token(), after=0)
    ref = put_map(place, restore_id, map_bytes(restore_id), random_token())
    put_receipt(place, receipt(place, restore_id, map_ref=ref))


def whole_restore(place: SourceRef) -> None:
    prove(place, begin_restore(place, NEW, utc_now, random_token))


def calls_of(store: Store) -> int:
    counted = FaultyStore(store, no_faults)
    whole_restore(SourceRef(counted, REPOSITORY, "shop"))
    return len(counted.calls)


def resumed(place: SourceRef) -> None:
    """What a user does after a crash: resume what is ongoing, or begin when nothing is; everything reads back."""
    for row in list_restores(place):
        assert not row.trouble
        read_plan(place, row.id)
        read_producers(place, row.id)
        if row.state is RestoreState.ONGOING:
            prove(place, row.id)
    if not list_restores(place):
        whole_restore(place)


def check(place: SourceRef) -> None:
    (row,) = list_restores(place)
    assert row.state is RestoreState.PROVEN
    found, producers = newest_receipt(place, row.id), newest_producers(place, row.id)
    assert found is not None
    assert found.map is not None
    assert producers is not None
    assert read_map(place, row.id, found.map) == map_bytes(row.id)


def test_killed_after_every_store_call(tmp_path: Path) -> None:
    calls = calls_of(created(tmp_path / "counted"))
    assert calls >= 7
    for k in range(1, calls + 1):
        root = tmp_path / str(k)
        victim = SourceRef(FaultyStore(created(root), KillAfter(k)), REPOSITORY, "shop")
        assert in_child(lambda v=victim: whole_restore(v)) == KILLED, f"call {k} was never made"  # type: ignore[misc]  # bound now
        place = SourceRef(LocalStore(root), REPOSITORY, "shop")
        resumed(place)
        check(place)
        shutil.rmtree(root)


def created(root: Path) -> LocalStore:
    store = LocalStore(root)
    store.create()
    return store


def test_every_answer_lost_on_a_directory(tmp_path: Path) -> None:
    answers_lost(lambda n: created(tmp_path / str(n)), calls_of(created(tmp_path / "counted")))


@pytest.mark.xdist_group("seaweed-faults")
def test_every_answer_lost_on_s3(seaweed_server: S3Server) -> None:
    def store(n: int) -> Store:
        return open_store(seaweed_server.url("crash", f"restores-{n}"))

    answers_lost(store, calls_of(store(0)))


def answers_lost(store: Callable[[int], Store], calls: int) -> None:
    for k in range(1, calls + 1):
        faulty = FaultyStore(store(k), Scripted({k: lost_ack()}))
        whole_restore(
            SourceRef(RetryingStore(faulty, RetryLimits(first_wait_s=0.001, longest_wait_s=0.01)), REPOSITORY, "shop")
        )
        check(SourceRef(store(k), REPOSITORY, "shop"))
