"""The two sources of an export, for one round: a cluster, and a backup."""

from dataclasses import dataclass

from logkeep.kafka.client.fetch import FetchLimits
from logkeep.kafka.client.rate_limit import share
from logkeep.kafka.client.settings import ClientSettings
from logkeep.kafka.datasets.sources.backup_facts import read_backup
from logkeep.kafka.datasets.sources.records_of_backup import BackupRecords
from logkeep.kafka.datasets.sources.records_of_cluster import ClusterRecords
from logkeep.kafka.datasets.sources.selection import ExportSelection
from logkeep.kafka.datasets.values import ExportableLogs, LogToExport
from logkeep.kafka.logs.brokers import SettingsBrokers
from logkeep.kafka.logs.burials import read_buried
from logkeep.kafka.record.backup_view import KafkaBackupView
from logkeep.kafka.record.dataset_document import DatasetLog
from logkeep.kafka.scan.values import ScanIsolation
from logkeep.model.work import Engine


@dataclass(frozen=True)
class ClusterSource:
    facts: ExportableLogs
    settings: ClientSettings
    committed: bool
    limit_download: int | None = None
    """Bytes per second from all brokers to all tasks together."""

    def records(self, logs: tuple[LogToExport, ...], engine: Engine, units: int) -> ClusterRecords:
        limits = FetchLimits(
            client_id=self.settings.client_id,
            committed=self.committed,
            bytes_per_s=share(self.limit_download, engine.at_once(units)),
        )
        return ClusterRecords(SettingsBrokers(self.settings), self.committed, limits)

    def buried_below(self, log: DatasetLog, offset: int) -> int:
        """Always 0: only archives have buried offsets."""
        return 0


@dataclass(frozen=True)
class BackupSource:
    facts: ExportableLogs
    whole: BackupRecords
    view: KafkaBackupView

    @classmethod
    def of(cls, view: KafkaBackupView, wanted: ExportSelection, isolation: ScanIsolation) -> "BackupSource":
        """A backup as a source. Raises UsageError if nothing is selected."""
        return cls(*read_backup(view, wanted, isolation), view)

    def records(self, logs: tuple[LogToExport, ...], engine: Engine, units: int) -> BackupRecords:
        return self.whole.only(logs)

    def buried_below(self, log: DatasetLog, offset: int) -> int:
        refs = [
            each.object
            for name, some in self.view.burials.items()
            if (name.name, name.partition) == (log.topic, log.partition)
            for each in some
        ]
        found = read_buried(self.view.place, refs)
        return found.within(0, offset).count if found is not None else 0
