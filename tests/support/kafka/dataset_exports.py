"""Exports into datasets in this process, and what an independent reader finds in them."""

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from confluent_kafka import TIMESTAMP_CREATE_TIME

from logkeep.engine.inline import InlineEngine
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.settings import ClientSettings, endpoints
from logkeep.kafka.dataset_upkeep.verify import read_back
from logkeep.kafka.datasets.formats import DatasetOptions
from logkeep.kafka.datasets.run import DatasetExport, ExportDone, ExportOptions
from logkeep.kafka.datasets.sources.cluster_facts import read_cluster
from logkeep.kafka.datasets.sources.export_sources import BackupSource, ClusterSource
from logkeep.kafka.datasets.sources.selection import ExportSelection
from logkeep.kafka.datasets.target import DatasetTarget
from logkeep.kafka.scan.open_backup import open_backup
from logkeep.kafka.scan.values import ScanIsolation
from logkeep.model.time import random_token, utc_now
from logkeep.repository.chain.commits import SourceRef
from logkeep.store.access import create_place
from logkeep.store.local.store import LocalStore
from tests.support.kafka.client_readers import Seen
from tests.support.kafka.v1_reader import V1Record, records


@dataclass
class Datasets:
    """Exports of some topics of one cluster into a directory."""

    root: Path
    bootstrap: str = ""
    isolation: str = "committed"
    segment_bytes: int = 1 << 20
    form: str = "kafka-backup-v1"
    schema: str = ""
    codec: str = ""
    engine: InlineEngine = field(default_factory=InlineEngine)

    def task(self, *rewrite: str) -> DatasetExport:
        options = ExportOptions(
            self.form, self.isolation, DatasetOptions(self.segment_bytes, self.schema, self.codec), rewrite
        )
        target = DatasetTarget(LocalStore(self.root), self.root)
        return DatasetExport(target, options, read_back, partial(create_place, str(self.root)))

    def of_cluster(self, *topics: str, rewrite: tuple[str, ...] = ()) -> ExportDone:
        return self.task(*rewrite).run(self.cluster_source(*topics), lambda _: self.engine)

    def of_backup(
        self, place: SourceRef, *topics: str, backup: str = "latest", rewrite: tuple[str, ...] = ()
    ) -> ExportDone:
        with open_backup(place, backup, "export", utc_now, random_token) as view:
            source = BackupSource.of(view, ExportSelection(topics), ScanIsolation(self.isolation))
            return self.task(*rewrite).run(source, lambda _: self.engine)

    def cluster_source(self, *topics: str) -> ClusterSource:
        settings = ClientSettings(endpoints(self.bootstrap))
        with Cluster(settings) as cluster:
            facts = read_cluster(cluster, ExportSelection(topics))
        return ClusterSource(facts, settings, self.isolation == "committed")

    def records(self, topic: str, partition: int = 0) -> list[V1Record]:
        return records(self.root / topic, partition)

    def offsets(self, topic: str, partition: int = 0) -> list[int]:
        return [each.offset for each in self.records(topic, partition)]

    def files(self, *topics: str) -> dict[str, bytes]:
        """What other tools read."""
        paths = [path for topic in topics for path in (self.root / topic).iterdir()]
        return {str(path.relative_to(self.root)): path.read_bytes() for path in paths}


def as_read(found: V1Record) -> Seen:
    """As librdkafka's client shows it."""
    headers = [(name.decode() if name is not None else "", value) for name, value in found.headers] or None
    kind = found.time_type if found.time is not None else 0
    time_ms = found.time if found.time is not None else -1
    return Seen(found.offset, kind + TIMESTAMP_CREATE_TIME, time_ms, found.key, found.value, headers)
