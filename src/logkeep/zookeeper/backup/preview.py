"""Preview of a backup: the new files, and whether they continue what is archived. Nothing is copied."""

from dataclasses import dataclass

from logkeep.model.findings import Finding
from logkeep.zookeeper.backup.findings import preview_findings
from logkeep.zookeeper.backup.member import MemberRun
from logkeep.zookeeper.backup.rounds import RoundSettings
from logkeep.zookeeper.backup.run import ZooKeeperBackupOptions
from logkeep.zookeeper.backup.server_files import list_files
from logkeep.zookeeper.model.sink import CompletedBackup, Gathered, Known, NewObjects


@dataclass(frozen=True)
class PreviewSink:
    """A sink that reports what is archived and stores nothing."""

    new_objects: NewObjects
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
    """An upper limit: logs end with padding, and files may be purged meanwhile."""
    findings: tuple[Finding, ...]


def preview_backup(options: ZooKeeperBackupOptions, sink: PreviewSink, rounds: RoundSettings) -> BackupPreview:
    """Raises what the backup itself would raise: DataDirUnusable, HistoryUnproven."""
    members = rounds.begin(options.members, sink, new_history=options.new_history)
    snapshots = logs = size = 0
    try:
        for member in members:
            member.update_files(list_files(member.place))
            member.update_state(rounds.ask_server(member.place.host))
            shots, pieces = member.snapshot_units(), [unit for _, unit in member.log_units()]
            snapshots += len(shots)
            logs += len(pieces)
            size += sum(unit.size_bytes for unit in shots) + sum(unit.size_bytes for unit in pieces)
    finally:
        for member in members:
            member.open_files.close()
    return BackupPreview(
        members[0].history,
        tuple(members),
        snapshots,
        logs,
        size,
        tuple(f for member in members for f in preview_findings(member)),
    )
