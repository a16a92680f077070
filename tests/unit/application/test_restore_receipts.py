"""What the repository keeps of restores of an application to a directory, and that a lost receipt undoes no restore."""

from datetime import timedelta
from pathlib import Path

import pytest

from logkeep.application.data_directory import read_directory
from logkeep.application.directory_restore import RestoredDirectory, restore_directory
from logkeep.checkpoint.archive.take import TakeOptions, mark, take
from logkeep.checkpoint.restore.run import prepare
from logkeep.engine.inline import InlineEngine
from logkeep.errors import ObjectMissing, StoreError
from logkeep.model.ids import BackupId
from logkeep.repository.chain.commits import read_chain
from logkeep.repository.restores import list_restores, newest_receipt
from logkeep.store.memory import MemoryStore
from tests.support.faults.plan import Fault, Plan, error_before, no_faults
from tests.support.faults.store import FaultyStore
from tests.support.scripted_application import ScriptedApplication, World


def _world(plan: Plan = no_faults) -> World:
    """Backups 7 and 9, and between them checkpoint 8."""
    world = World(store=FaultyStore(MemoryStore(), plan))
    app = ScriptedApplication(world, 2)
    world.drain(take(world.place, app, TakeOptions(BackupId(7)), world.clock, world.tokens))
    world.drain(mark(world.place, app, BackupId(8), timedelta(minutes=1), world.clock, world.tokens))
    world.drain(take(world.place, app, TakeOptions(BackupId(9)), world.clock, world.tokens))
    return world


def _restore(world: World, directory: Path, checkpoint: int) -> RestoredDirectory:
    plan = prepare(world.place, read_chain(world.place), checkpoint)
    return restore_directory(
        world.place, plan, directory, 0, world.clock, world.tokens, lambda _: InlineEngine(), lambda _: False
    )


def _states(world: World) -> list[tuple[str, int | None]]:
    return [(row.state, row.backup) for row in list_restores(world.place)]


def test_each_restore_leaves_a_receipt_of_what_was_compared(tmp_path: Path) -> None:
    world = _world()
    done = [_restore(world, tmp_path / str(checkpoint), checkpoint) for checkpoint in (7, 8)]
    assert _states(world) == [("proven", 7), ("unproven", 9)]  # no backup recorded the state at checkpoint 8
    receipt = newest_receipt(world.place, done[1].id)
    assert receipt is not None
    assert receipt.target.name.endswith(f": {tmp_path / '8'}")
    assert receipt.facts == {
        "checkpoint": "8",
        "history": "2",
        "partition 0": "1 position of the log, not compared",
        "partition 1": "1 position of the log, not compared",
    }


def test_a_restore_that_fails_leaves_a_receipt_with_the_error(tmp_path: Path) -> None:
    world = _world()
    for info in list(world.store.list("sources/shop/topics/")):
        world.store.delete(info.name)
    with pytest.raises(ObjectMissing) as failed:
        _restore(world, tmp_path, 7)
    assert _states(world) == [("failed", 7)]
    receipt = newest_receipt(world.place, list_restores(world.place)[0].id)
    assert receipt is not None
    assert [finding.what for finding in receipt.findings] == [failed.value.what]


def test_a_receipt_that_cannot_be_stored_undoes_nothing(tmp_path: Path) -> None:
    def refused(_call: int, operation: str, name: str) -> Fault | None:
        return error_before() if operation == "put_new" and "/receipt." in name else None

    world = _world(refused)
    with pytest.raises(StoreError, match="the application is restored, but its receipt cannot be stored") as failed:
        _restore(world, tmp_path, 7)
    assert failed.value.remedy == "start the application; nothing needs to be repeated"
    assert read_directory(tmp_path).document.history == 1
    assert _states(world) == [("ongoing", 7)]
