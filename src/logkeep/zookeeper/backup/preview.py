"""What a backup would copy, without copying: the files that are new, and whether they continue what is archived."""

from dataclasses import dataclass

from logkeep.errors import ClusterError
from logkeep.model.findings import Finding
from logkeep.zookeeper.backup.findings import preview_findings
from logkeep.zookeeper.backup.member import MemberRun
from logkeep.zookeeper.backup.rounds import RoundSettings
from logkeep.zookeeper.backup.run import ZooKeeperBackupOptions
from logkeep.zookeeper.backup.server_files import look
from logkeep.zookeeper.model.sink import CompletedBackup, Gathered, Known, Shelf
from logkeep.zookeeper.server.four_letter import ServerState


@dataclass(frozen=True)
class Nowhere:
    """A sink that is asked what is known and never gets anything."""

    shelf: Shelf
    known: Known

    @property
    def url(self) -> str:
        return ""

    def start(self) -> None:
        raise RuntimeError("nothing is written")

    def complete(self, gathered: Gathered) -> CompletedBackup:
        raise RuntimeError("nothing is written")


@dataclass(frozen=True)
class BackupPreview:
    history: str
    members: tuple[MemberRun, ...]
    snapshots: int
    logs: int
    size_bytes: int
    """At most: the ends of logs are padding, and what is there may be purged meanwhile."""
    findings: tuple[Finding, ...]


def preview_backup(wish: ZooKeeperBackupOptions, sink: Nowhere, rounds: RoundSettings) -> BackupPreview:
    """Raises what the backup itself would raise: DataDirUnusable, HistoryUnproven."""
    members = rounds.begin(wish.members, sink, new_history=wish.new_history)
    snapshots = logs = size = 0
    try:
        for member in members:
            member.saw(look(member.place))
            member.asked(_asked(member, rounds))
            shots, pieces = member.snapshot_units(), [unit for _, unit in member.log_units()]
            snapshots += len(shots)
            logs += len(pieces)
            size += sum(unit.size_bytes for unit in shots) + sum(unit.size_bytes for unit in pieces)
    finally:
        for member in members:
            member.pins.close()
    return BackupPreview(
        members[0].history,
        tuple(members),
        snapshots,
        logs,
        size,
        tuple(f for member in members for f in preview_findings(member)),
    )


def _asked(member: MemberRun, rounds: RoundSettings) -> ServerState | None:
    try:
        return rounds.ask(member.place.host) if member.place.host else None
    except ClusterError:
        return None
