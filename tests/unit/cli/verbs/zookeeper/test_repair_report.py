"""What people read of a repair: why something is left, and who was not asked."""

from logkeep.cli.terminal.text import TerminalStyle
from logkeep.cli.verbs.zookeeper.repair import repair
from logkeep.cli.verbs.zookeeper.repair_report import RepairedObject, ZooKeeperRepairReport


def told(*objects: RepairedObject, unread: int = 0) -> str:
    report = ZooKeeperRepairReport(
        source="zk",
        id=20261116031500,
        objects=objects,
        lost=(),
        verdict=None,
        findings=(),
        also=(),
        unread=unread,
        dry_run=True,
    )
    return repair.job.text(report, TerminalStyle())


def test_what_is_left_has_its_reason_beside_it() -> None:
    left = RepairedObject(file="zk1/log.1", object="o", kind="left", what="zk1/log.1: split", why="nobody has it")
    mended = RepairedObject(file="zk1/log.4", object="p", kind="spliced", what="zk1/log.4: spliced")
    assert told(left, mended).splitlines() == [
        "would be left: zk1/log.1: split; nobody has it",
        "would be spliced: zk1/log.4: spliced",
    ]


def test_backups_that_were_not_looked_at_are_counted() -> None:
    left = RepairedObject(file="zk1/log.1", object="o", kind="left", what="zk1/log.1: split", why="nobody has it")
    assert "3 other backups may have some of it and were not read" in told(left, unread=3)
