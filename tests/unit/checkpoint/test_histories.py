"""Every restore of an application gets a history of its own, and holds the backups that it reads."""

import pytest

from logkeep.checkpoint.archive.take import TakeOptions, take
from logkeep.checkpoint.restore.histories import LARGEST, HistoryReservation, reserve_history, reserved_histories
from logkeep.checkpoint.restore.run import holding, known_history, prepare
from logkeep.errors import StoreDenied, StoreUnreachable, TargetUnsafe, UnknownBackup, UsageError
from logkeep.model.ids import BackupId
from logkeep.repository.backups.holds import held_ids, reader_holds
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.documents import read
from logkeep.repository.chain.owner import this_process
from logkeep.repository.chain.write_session import writing
from logkeep.repository.upkeep.prune import PruneSituation, delete, plan_delete
from logkeep.store.readonly import ReadOnlyStore
from tests.support.faults.plan import Fault
from tests.support.faults.store import FaultyStore
from tests.support.scripted_application import ScriptedApplication, World


@pytest.fixture
def world() -> World:
    made = World()
    app = ScriptedApplication(made, 2)
    for each in (10, 20):
        made.drain(take(made.place, app, TakeOptions(BackupId(each)), made.clock, made.tokens))
    return made


def _reserve(world: World, known: int = 0, place: SourceRef | None = None) -> int:
    return reserve_history(place or world.place, 10, known, world.clock, world.tokens)


def test_two_restores_of_one_backup_get_different_histories(world: World) -> None:
    """Both plan before either reserves: the first number is the same, and only one of them gets it."""
    folded = read_chain(world.place)
    known = known_history(world.place, folded, 0)
    assert known == 0
    assert [_reserve(world, known), _reserve(world, known), _reserve(world, known)] == [1, 2, 3]
    assert known_history(world.place, folded, 0) == 3
    assert _reserve(world, 9) == 10
    stored = read(world.store, layout.history("shop", 2), HistoryReservation, world.repository)
    assert (stored.history, stored.checkpoint) == (2, 10)


def test_a_restore_that_loses_the_race_takes_the_next_number(world: World) -> None:
    def faster(_number: int, operation: str, name: str) -> Fault | None:
        if operation == "put_new" and name == layout.history("shop", 1) and not reserved_histories(world.place):
            assert _reserve(world) == 1
        return None

    place = SourceRef(FaultyStore(world.store, faster), world.repository, "shop")
    assert _reserve(world, place=place) == 2


def test_a_lost_answer_of_the_store_reserves_once(world: World) -> None:
    def lost(_number: int, operation: str, name: str) -> Fault | None:
        ours = operation == "put_new" and "histories" in name
        return Fault(after=StoreUnreachable("the answer was lost")) if ours else None

    place = SourceRef(FaultyStore(world.store, lost), world.repository, "shop")
    with pytest.raises(StoreUnreachable):
        _reserve(world, place=place)
    assert _reserve(world) == 2


def test_a_repository_that_cannot_be_written_is_named_with_a_remedy(world: World) -> None:
    place = SourceRef(ReadOnlyStore(world.store), world.repository, "shop")
    with pytest.raises(StoreDenied, match="cannot be reserved") as found:
        _reserve(world, place=place)
    assert "histories/" in found.value.remedy


def test_names_that_no_release_writes_reserve_nothing(world: World) -> None:
    for name in ("x.json", f"{10**19:020}.json", f"{LARGEST + 1:020}.json", f"{7:020}.{'0' * 16}.json"):
        world.store.put_new(layout.histories("shop") + name, b"")
    assert reserved_histories(world.place) == []
    with pytest.raises(TargetUnsafe):
        _reserve(world, LARGEST)


def test_garbage_collection_leaves_reservations_alone() -> None:
    assert not layout.collectable("shop", layout.history("shop", 3))


def test_a_restore_holds_every_backup_that_it_reads(world: World) -> None:
    plan = prepare(world.place, read_chain(world.place), 20)
    owner = this_process(world.tokens())
    with holding(world.place, plan, owner, world.tokens) as folded:
        held = held_ids(reader_holds(world.place), world.clock())
        assert set(held) == set(plan.backups) >= {20}
        with pytest.raises(UsageError):
            plan_delete(PruneSituation(folded, {}, held), [BackupId(20)])
    assert reader_holds(world.place) == []
    with writing(world.place, "delete", world.clock, world.tokens) as session:
        delete(session, [20], "test")
    with pytest.raises(UnknownBackup), holding(world.place, plan, owner, world.tokens):
        pass
