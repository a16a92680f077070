"""Restores of an application in memory into a directory: exact logs, earlier checkpoints, and kills at every step."""

from datetime import timedelta
from pathlib import Path

import pytest

from logkeep.checkpoint.archive.take import TakeOptions, mark, take
from logkeep.checkpoint.restore.points import archived_records
from logkeep.checkpoint.restore.run import (
    RestoredApplication,
    check_partitions,
    finish,
    known_history,
    prepare,
    restore,
)
from logkeep.checkpoint.restore.swap import interrupted
from logkeep.checkpoint.restore.target import dropped, log_end
from logkeep.checkpoint.steps import Steps
from logkeep.engine.inline import InlineEngine
from logkeep.errors import Damaged, TargetUnsafe, UnknownBackup
from logkeep.model.ids import BackupId
from logkeep.repository.chain.commits import read_chain
from logkeep.repository.chain.write_session import writing
from logkeep.repository.upkeep.prune import delete
from logkeep.store.memory import MemoryStore
from tests.support.scripted_application import ScriptedApplication, World


@pytest.fixture
def world() -> World:
    return World()


def _application(world: World, *ids: int, partitions: int = 2) -> ScriptedApplication:
    """Backups with these ids; a negative id is a marker."""
    app = ScriptedApplication(world, partitions)
    for each in ids:
        for partition in app.partitions:
            partition.work(4 + partition.number)
        if each < 0:
            world.drain(mark(world.place, app, BackupId(-each), timedelta(minutes=1), world.clock, world.tokens))
        else:
            world.drain(take(world.place, app, TakeOptions(BackupId(each)), world.clock, world.tokens))
    for partition in app.partitions:
        partition.work(7)
    return app


def _restore(world: World, directory: Path, checkpoint: int, label: str = "x") -> Steps[RestoredApplication]:
    folded = read_chain(world.place)
    plan = prepare(world.place, folded, checkpoint)
    return restore(world.place, folded, plan, directory, b"document", label, lambda _: InlineEngine())


def _log(directory: Path, partition: int) -> bytes:
    return b"".join(path.read_bytes() for path in sorted((directory / f"p{partition}/log").iterdir()))


def _end_of(app: ScriptedApplication, partition: int, checkpoint: int) -> int:
    return next(end for i, _, end in app.partitions[partition].checkpoints if i == checkpoint)


def _expected(app: ScriptedApplication, partition: int, checkpoint: int, start: int) -> bytes:
    one = app.partitions[partition]
    end = _end_of(app, partition, checkpoint)
    return b"".join(data for data in one.log if start <= int.from_bytes(data[:8], "big") < end)


def _start(directory: Path, partition: int) -> int:
    return min(int(path.stem) for path in (directory / f"p{partition}/log").iterdir())


@pytest.mark.parametrize("checkpoint", [10, 20, 25, 28, 30])
def test_r12_r13_r58_r59_every_checkpoint_is_restored_up_to_its_create_and_no_further(
    world: World, tmp_path: Path, checkpoint: int
) -> None:
    app = _application(world, 10, 20, -25, -28, 30)
    restored = world.drain(_restore(world, tmp_path, checkpoint))
    assert restored.before is None
    assert (tmp_path / "application.json").read_bytes() == b"document"
    for partition in range(2):
        start = _start(tmp_path, partition)
        assert _log(tmp_path, partition) == _expected(app, partition, checkpoint, start)
        snapshots = [int(path.stem) for path in (tmp_path / f"p{partition}/snapshots").iterdir()]
        position = _end_of(app, partition, checkpoint) - 1
        assert all(start - 1 <= found < position for found in snapshots)
        assert snapshots or start == 0


def test_r14_one_copy_of_a_partition_is_enough(world: World, tmp_path: Path) -> None:
    app = _application(world, 10, partitions=1)
    world.drain(_restore(world, tmp_path, 10))
    assert _log(tmp_path, 0) == _expected(app, 0, 10, 0)


def test_an_unknown_checkpoint_and_another_number_of_partitions_are_refused(world: World) -> None:
    _application(world, 10)
    folded = read_chain(world.place)
    with pytest.raises(UnknownBackup):
        prepare(world.place, folded, 11)
    plan = prepare(world.place, folded, 10)
    with pytest.raises(TargetUnsafe, match="2 partitions"):
        check_partitions(plan, 3)
    assert known_history(world.place, folded, 0) == 0
    assert known_history(world.place, folded, 4) == 4


def test_a_checkpoint_whose_earlier_backup_was_deleted_is_not_offered(world: World) -> None:
    """Backup 30 has the log since 20 and its own snapshot, which is behind the marker."""
    _application(world, 10, 20, -25, 30)
    assert prepare(world.place, read_chain(world.place), 25).backup == 30
    with writing(world.place, "delete", world.clock, world.tokens) as session:
        delete(session, [10, 20], "test")
    with pytest.raises(UnknownBackup, match="no kept backup has a state"):
        prepare(world.place, read_chain(world.place), 25)


def test_damaged_objects_are_reported_and_the_old_files_stay(world: World, tmp_path: Path) -> None:
    _application(world, 10)
    _old(tmp_path)
    assert isinstance(world.store, MemoryStore)
    for info in list(world.store.list("sources/shop/topics/")):
        if ".log" in info.name:
            data = bytearray(world.store.get(info.name, 1 << 20))
            data[len(data) // 2] ^= 1
            world.store.replace(info.name, bytes(data), info.version)
    with pytest.raises(Damaged):
        world.drain(_restore(world, tmp_path, 10))
    assert (tmp_path / "application.json").read_bytes() == b"old"
    assert (tmp_path / "p0/log/x").read_bytes() == b"old log"


def test_a_state_that_is_not_the_one_backed_up_is_found_before_the_swap(world: World, tmp_path: Path) -> None:
    app = ScriptedApplication(world, 2)
    _old(tmp_path)
    world.drain(take(world.place, app, TakeOptions(BackupId(10)), world.clock, world.tokens))
    assert [one.proven for one in world.drain(_restore(world, tmp_path / "good", 10)).partitions] == [True, True]
    app.state_digest = "ab" * 32
    world.drain(take(world.place, app, TakeOptions(BackupId(20)), world.clock, world.tokens))
    with pytest.raises(Damaged, match="do not give the state that was backed up"):
        world.drain(_restore(world, tmp_path, 20))
    assert (tmp_path / "application.json").read_bytes() == b"old"
    assert (tmp_path / "p0/log/x").read_bytes() == b"old log"


def test_records_of_the_target_after_the_checkpoint_are_counted(world: World, tmp_path: Path) -> None:
    app = _application(world, 10, 20)
    first, second = (prepare(world.place, read_chain(world.place), i) for i in (10, 20))
    world.drain(_restore(world, tmp_path, 20))
    for one, later in zip(first.partitions, second.partitions, strict=True):
        end = _end_of(app, one.partition, 20)
        assert log_end(tmp_path / f"p{one.partition}") == end == later.cut_end
        assert dropped(tmp_path, one, 0, first.history) == end - one.cut_end > 0
        assert dropped(tmp_path, later, 0, first.history) == 0
        assert dropped(tmp_path, one, 1, first.history) is None
        assert dropped(tmp_path, one, None, first.history) == 0
    (last,) = list((tmp_path / "p0/log").iterdir())[-1:]
    last.write_bytes(last.read_bytes()[:-1])
    assert log_end(tmp_path / "p0") == second.partitions[0].cut_end - 1  # a torn batch is not there
    assert log_end(tmp_path / "p7") is None


def _old(directory: Path) -> None:
    (directory / "p0/log").mkdir(parents=True)
    (directory / "p0/log/x").write_bytes(b"old log")
    (directory / "p9").mkdir()
    (directory / "application.json").write_bytes(b"old")
    (directory / "lock").touch()


def test_r60_killed_at_any_step_nothing_can_start_in_between_and_nothing_is_lost(world: World, tmp_path: Path) -> None:
    """At each step the document is the old one with all old files, the new one with all new files, or absent."""
    app = _application(world, 10, 20)
    whole = [_expected(app, p, 20, _start_of(world, p)) for p in range(2)]
    steps = 0
    while True:
        directory = tmp_path / f"at{steps}"
        directory.mkdir()
        _old(directory)
        running = _restore(world, directory, 20)
        try:
            for _ in range(steps + 1):
                next(running)
                _check_startable(directory, whole)
        except StopIteration:
            break
        running.close()
        began = interrupted(directory)
        assert world.drain(finish(directory)) == began
        if not began and (directory / "application.json").read_bytes() == b"old":
            world.drain(_restore(world, directory, 20))
        _check_startable(directory, whole)
        assert (directory / "application.json").read_bytes() == b"document"
        assert (directory / "before-x/p0/log/x").read_bytes() == b"old log"
        assert (directory / "before-x/application.json").read_bytes() == b"old"
        assert not (directory / "p9").exists()
        assert not (directory / "restore").exists()
        steps += 1
    assert steps > 15


def _start_of(world: World, partition: int) -> int:
    return prepare(world.place, read_chain(world.place), 20).partitions[partition].log_start


def _check_startable(directory: Path, whole: list[bytes]) -> None:
    document = directory / "application.json"
    if not document.exists():
        assert any(one.name != "lock" for one in directory.iterdir())  # an application refuses such a directory
    elif document.read_bytes() == b"old":
        assert (directory / "p0/log/x").read_bytes() == b"old log"
    else:
        assert [_log(directory, p) for p in range(2)] == whole


def test_an_application_that_was_put_back_to_an_earlier_state_is_restored_from_every_backup(
    world: World, tmp_path: Path
) -> None:
    """Backup 10, its log is put back to before it, other records at the same positions, backups 20 and 30."""
    app = _application(world, 5)
    earlier = [(list(one.log), one.end, one.latest, list(one.checkpoints)) for one in app.partitions]
    _backup(world, app, 10)
    kept = {10: [_expected(app, partition, 10, 0) for partition in range(2)]}
    for one, state in zip(app.partitions, earlier, strict=True):
        one.log, one.end, one.latest, one.checkpoints = state
        one.work(3)
    for each in (20, 30):
        _backup(world, app, each)
        kept[each] = [_expected(app, partition, each, 0) for partition in range(2)]
    for checkpoint, logs in kept.items():
        world.drain(_restore(world, tmp_path / str(checkpoint), checkpoint))
        for partition, log in enumerate(logs):
            assert log.endswith(_log(tmp_path / str(checkpoint), partition))
    records = archived_records(world.place, read_chain(world.place))
    assert [{copy.branch for copy in record.copies} for record in records] == [{0}, {0}, {20}, {20}]


def _backup(world: World, app: ScriptedApplication, backup_id: int) -> None:
    for partition in app.partitions:
        partition.work(backup_id)
    world.drain(take(world.place, app, TakeOptions(BackupId(backup_id)), world.clock, world.tokens))
