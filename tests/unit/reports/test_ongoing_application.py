"""`status` while the partitions of an application copy: no run holds the lease, and a backup is ongoing."""

from logkeep.checkpoint.archive.take import TakeOptions, take
from logkeep.model.ids import BackupId
from logkeep.reports.status import Objectives, status_report
from tests.support.scripted_application import ScriptedApplication, World


def test_the_backup_whose_partitions_copy_is_running() -> None:
    world = World()
    app = ScriptedApplication(world, 3)
    app.copying = {0}
    world.drain(take(world.place, app, TakeOptions(BackupId(5), wait=False), world.clock, world.tokens))
    (found,) = status_report([world.place], world.clock(), Objectives(), lambda place: place, "").sources
    assert found.running is not None
    assert found.running.startswith("backup 5, since 2026-11-18T12:00:")
    for partition in (1, 2):
        world.drain(app.copy(partition, 5))
    (found,) = status_report([world.place], world.clock(), Objectives(), lambda place: place, "").sources
    assert (found.running, found.newest_good) == (None, 5)
