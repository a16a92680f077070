"""Whole backups of a real cluster into a directory, and reading them back by their manifests."""

from dataclasses import dataclass, field
from pathlib import Path

from logkeep.engine.inline import InlineEngine
from logkeep.kafka.backup.run import KafkaBackup
from logkeep.kafka.backup.values import KafkaBackupDone, KafkaBackupOptions
from logkeep.kafka.client.properties import load_settings
from logkeep.kafka.client.settings import ClientSettings, endpoints
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.logs.batch_check import check_logs
from logkeep.kafka.record.documents import ROLE, ClusterRecord
from logkeep.model.ids import BackupId
from logkeep.model.segments import LogName, Segment
from logkeep.model.time import random_token, utc_now
from logkeep.model.work import Engine
from logkeep.repository.access import create_repository
from logkeep.repository.backups.attachments import read_attachment
from logkeep.repository.backups.content import PartReader, rows_of, served_parts
from logkeep.repository.backups.manifest import LogCut, Manifest
from logkeep.repository.backups.source import read_manifest
from logkeep.repository.backups.verdicts import GOOD
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.format import StoreFacts
from logkeep.repository.chain.owner import this_process
from logkeep.repository.verify.run import Verifier
from logkeep.store.local.store import LocalStore
from tests.support.kafka.copied_logs import archived


def new_place(root: Path, source: str = "prod") -> SourceRef:
    """An empty repository in a directory."""
    store = LocalStore(root)
    store.create()
    facts = StoreFacts(put_new=True, replace=True, durable=True)
    return create_repository(store, facts, utc_now(), random_token).place(source)


@dataclass(frozen=True)
class Archive:
    """One cluster and the repository that it is backed up into."""

    bootstrap: str
    place: SourceRef
    engine: Engine = field(default_factory=InlineEngine)
    client: Path | None = None
    """A client.properties."""

    @property
    def task(self) -> KafkaBackup:
        settings = ClientSettings(endpoints(self.bootstrap))
        if self.client is not None:
            settings = load_settings(self.client, bootstrap=self.bootstrap)
        return KafkaBackup(self.place, settings, utc_now, random_token)

    def back_up(self, *topics: str, **wish: object) -> KafkaBackupDone:
        options = KafkaBackupOptions(include=topics, **wish)  # type: ignore[arg-type]  # a test's own options
        return self.task.run(options, lambda _: self.engine)

    def manifest(self, backup_id: int) -> Manifest:
        entry = read_chain(self.place).entry(backup_id)
        assert entry is not None
        return read_manifest(self.place, entry)

    def record(self, backup_id: int) -> ClusterRecord:
        found = read_attachment(self.place, self.manifest(backup_id), ROLE, ClusterRecord)
        assert found is not None
        return found

    def segments(self, backup_id: int) -> dict[LogName, list[Segment]]:
        """By log, in order."""
        manifest = self.manifest(backup_id)
        rows = rows_of(PartReader(self.place), manifest, served_parts(manifest, read_chain(self.place)))
        found: dict[LogName, list[Segment]] = {cut.log: [] for cut in manifest.cut}
        for segment in rows.to_segments():
            found[segment.log].append(segment)
        return found

    def batches(self, backup_id: int, topic: str, partition: int = 0) -> list[bytes]:
        """What a reader of the archive sees of one partition."""
        found = self.segments(backup_id)
        return archived(self.place, found[self.cut(backup_id, topic, partition).log])

    def cut(self, backup_id: int, topic: str, partition: int = 0) -> LogCut:
        return self.cuts(backup_id)[TopicPartition(topic, partition)]

    def cuts(self, backup_id: int) -> dict[TopicPartition, LogCut]:
        return {TopicPartition(c.log.name, c.log.partition): c for c in self.manifest(backup_id).cut}

    def check(self, *backup_ids: int) -> None:
        """`verify --level data` finds nothing wrong."""
        verifier = Verifier(self.place, InlineEngine(), this_process("verify"), utc_now, random_token, check_logs)
        for backup_id in backup_ids:
            verified = verifier.verify(BackupId(backup_id), "data")
            assert verified.document.verdict == GOOD, verified.findings

    def data_names(self) -> set[str]:
        """Every object that holds data or rows of a table of it."""
        return {
            i.name
            for i in self.place.store.list("sources/")
            if i.name.endswith((".log", ".log.zst", ".index", ".parquet"))
        }
