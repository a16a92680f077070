"""Moments of servers under load that an independent client saw, and restores to them, which real servers have to show.

The load is held for each moment and goes on behind it, so backups are taken while it runs. How fast it was is counted
and printed, never asked for: that is the machine's to say.
"""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import BinaryIO

from logkeep.embedded.zookeeper import EmbeddedZooKeeper
from logkeep.model.findings import Finding, Severity
from logkeep.zookeeper.backup.run import ZooKeeperBackupDone
from logkeep.zookeeper.model.archived import ArchivedLog, ArchivedSnapshot, BackupView, Member
from logkeep.zookeeper.restore.prepare import prepare
from logkeep.zookeeper.restore.run import carry_out
from logkeep.zookeeper.restore.values import ZooKeeperRestoreOptions
from logkeep.zookeeper.timeline.plan import RestorePath, ToZxid
from logkeep.zookeeper.timeline.verified_path import choose
from tests.support.zookeeper.load import Load
from tests.support.zookeeper.restored_servers import target_of
from tests.support.zookeeper.tree_judge import between, differences
from tests.support.zookeeper.tree_recorder import Recording, record

SESSION_MS = 120_000
"""Sessions that are restored live so long: nobody looks at a server for as long as that."""
SETTINGS = {"snapCount": "1000", "preAllocSize": "4096", "forceSync": "no", "maxSessionTimeout": str(SESSION_MS)}
DELETES_NOTHING = "-Dznode.container.checkIntervalMs=3600000"
"""Otherwise a server deletes empty containers and nodes with a time to live every minute, also while tests read it."""
JAVA = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", DELETES_NOTHING)
_FEWEST, _MOST = 100, 1_500
"""Transactions between two moments."""


@dataclass
class Told:
    """What is printed with a test."""

    who: str
    others: bool = False
    """Other members hold what one of them may lack."""
    operations: int = 0
    transactions: int = 0
    ran_s: float = 0.0
    backups: int = 0
    backup_operations: int = 0
    backup_s: float = 0.0
    rounds: int = 0
    restores: int = 0
    nodes: int = 0
    differences: int = 0
    digests: int = 0
    more: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        ran_s, backup_s = max(self.ran_s, 0.001), max(self.backup_s, 0.001)
        return ", ".join(
            [
                f"{self.who}: {self.operations / ran_s:,.0f} operations/s and {self.transactions / ran_s:,.0f} "
                f"transactions/s over {self.ran_s:.1f} s of load",
                f"{self.backup_operations / backup_s:,.0f} operations/s while {self.backups} backups were taken in "
                f"{self.backup_s:.1f} s and {self.rounds} rounds",
                f"{self.restores} restores looked at through real servers: {self.nodes:,} nodes compared, "
                f"{self.differences} differences",
                f"{self.digests:,} digests compared on the way, 0 mismatches",
                *self.more,
            ]
        )

    @contextmanager
    def load(self, load: Load) -> Iterator[Load]:
        """Runs inside, and is counted in."""
        try:
            with load:
                yield load
        finally:
            self.operations += load.operations
            self.transactions += load.transactions
            self.ran_s += load.ran_s

    def backup(self, load: Load, taken: Callable[[], ZooKeeperBackupDone]) -> None:
        """Take one while the load runs."""
        operations, ran_s = load.operations, load.ran_s
        done = taken()
        load.wait_for(1)  # so that the batch that was on its way is counted, with its time
        wrong = [finding for finding in done.findings if not _is_of_a_kill(finding, others=self.others)]
        assert (done.exit_code, wrong) == (0, []), f"{done.exit_code}: {wrong}"
        self.backups += 1
        self.rounds += done.gathered.rounds
        self.backup_operations += load.operations - operations
        self.backup_s += load.ran_s - ran_s


def _is_of_a_kill(finding: Finding, *, others: bool) -> bool:
    """A leader that was killed may have torn its last record, and who caught up may have logged some again.

    Or may have got a snapshot instead of transactions, which the others hold: restores show that nothing is missing.
    """
    harmless = {"torn-tail", "logged-again", *(["held-by-another"] if others else [])}
    return finding.severity is Severity.NOTE and finding.code in harmless


class Moments:
    """Taken at random, each with the tree that was there. Data that did not change is kept once."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._data: dict[bytes | None, bytes | None] = {}
        self.taken: list[Recording] = []

    def take(self, load: Load, look: Callable[[], Recording]) -> None:
        load.wait_for(self._random.randint(_FEWEST, _MOST))
        with load.paused():
            seen = look()
        nodes = {path: node._replace(data=self._once(node.data)) for path, node in seen.nodes.items()}
        self.taken.append(replace(seen, nodes=nodes))

    def _once(self, data: bytes | None) -> bytes | None:
        return self._data.setdefault(data, data)


@dataclass(frozen=True)
class Only:
    """A backup as if it had these snapshots alone."""

    whole: BackupView
    snapshots: tuple[ArchivedSnapshot, ...]

    @property
    def name(self) -> str:
        return self.whole.name

    @property
    def members(self) -> Sequence[Member]:
        return self.whole.members

    @property
    def logs(self) -> Sequence[ArchivedLog]:
        return self.whole.logs

    def open(self, kept: ArchivedSnapshot | ArchivedLog) -> BinaryIO:
        return self.whole.open(kept)

    def salvage(self, kept: ArchivedLog) -> BinaryIO:
        return self.whole.salvage(kept)

    def unsealed(self, kept: ArchivedSnapshot | ArchivedLog) -> bool:
        return self.whole.unsealed(kept)


def restored_to(view: BackupView, moment: Recording, servers: Sequence[EmbeddedZooKeeper], told: Told) -> RestorePath:
    """Into new directories of servers that do not run, as the product does it; its own tree is compared too."""
    chosen = choose(view, ToZxid(moment.zxid))
    differing = differences(moment, chosen.replayed.tree)
    assert differing == [], differing[:5]
    wish = ZooKeeperRestoreOptions(
        targets=tuple(target_of(server) for server in servers),
        version=servers[0].release.version,
        extended_types=True,
        ensemble=len(servers) > 1,
    )
    carry_out(prepare(view, chosen.path, wish, replayed=chosen.replayed))
    told.digests += chosen.replayed.digests_compared
    return chosen.path


def looked_at(server: EmbeddedZooKeeper, moment: Recording, told: Told) -> None:
    """A server that runs on what was restored."""
    found = record(server.client, server.password)
    differing = between(found.nodes, moment.nodes)
    told.nodes += len(moment.nodes)
    told.differences += len(differing)
    assert differing == [], differing[:5]


@contextmanager
def scratch(directory: Path) -> Iterator[Path]:
    """Many restores of large trees: each is gone before the next."""
    directory.mkdir()
    yield directory
    shutil.rmtree(directory)
