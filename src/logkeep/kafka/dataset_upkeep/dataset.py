"""A dataset that exists: recognised, its document read, its partitions with their files."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from logkeep.errors import Damaged, UsageError
from logkeep.formats.datasets.kafka_backup_v1.reader import group_offsets
from logkeep.kafka.datasets.target import DatasetTarget
from logkeep.kafka.importing.kafka_backup_v1 import FORMAT, LABEL, V1Files, v1_files
from logkeep.kafka.importing.reader import DatasetReader
from logkeep.kafka.importing.recognise import is_v1, listed_dataset, open_listed
from logkeep.kafka.record.dataset_document import DatasetDocument
from logkeep.kafka.record.dataset_version import DOCUMENT
from logkeep.kafka.record.documents import TopicRecord


@dataclass(frozen=True)
class ExistingDataset:
    """A dataset as it is: files of kafka-backup-v1, whose indexes may be wrong, or a reader of another format."""

    target: DatasetTarget
    format: str
    document: DatasetDocument | None
    """What a run of ours noted; None in datasets of other tools."""
    v1: Mapping[tuple[str, int], V1Files] = field(default_factory=dict)
    reader: DatasetReader | None = None

    @property
    def topics(self) -> dict[str, TopicRecord]:
        """The topics that a run noted, by name. What is set on the brokers may be missing in their configs."""
        return {each.name: each for each in self.document.topics} if self.document is not None else {}

    @property
    def topics_of_known_configs(self) -> frozenset[str]:
        """Those of which also the configs of the brokers are known."""
        return self.document.topics_of_known_configs if self.document is not None else frozenset()

    @property
    def records_bytes(self) -> int:
        """The size of the files with records."""
        if self.reader is not None:
            return self.reader.size_bytes
        return sum(info.size for files in self.v1.values() for info in files.records.values())

    @property
    def tool(self) -> str:
        """Which tool wrote it, as far as the files say."""
        if self.document is not None:
            return "logkeep"
        return self.reader.label.tool if self.reader is not None else LABEL.tool

    @property
    def cluster_id(self) -> str:
        if self.document is not None:
            return self.document.cluster_id
        return self.reader.cluster_id if self.reader is not None else ""

    def groups(self) -> set[str]:
        """Names of all groups that have a position. Reads their files."""
        found = {each.name for each in self.document.groups if each.commits} if self.document is not None else set()
        if self.reader is not None:
            return found.union(self.reader.groups)
        for files in self.v1.values():
            with suppress(Damaged):
                data = self.target.read(files.groups.name) if files.groups else None
                found.update(group_offsets(data or b"", ""))
        return found


def open_existing(target: DatasetTarget) -> ExistingDataset:
    """Open a dataset. Raises UsageError for what is no dataset, FormatTooNew, and UnsafeName for links and hostile
    names."""
    try:
        objects, document = listed_dataset(target.store)
    except Damaged as error:
        if error.subject != DOCUMENT:
            raise
        raise UsageError(error.what, subject=error.subject, remedy=error.remedy) from error
    if document.format == FORMAT if document is not None else is_v1(objects):
        return ExistingDataset(target, FORMAT, document, v1=dict(sorted(v1_files(objects).items())))
    reader = open_listed(target.store, objects, document)
    return ExistingDataset(target, reader.label.format, document, reader=reader)
