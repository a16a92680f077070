"""Recognises a dataset by its names and bytes, and opens its reader."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import msgspec

from logkeep.errors import UnsafeName, UsageError
from logkeep.formats.datasets.avro.schemas import AvroSchema
from logkeep.formats.datasets.kafka_backup_v1.reader import file_name
from logkeep.kafka.importing import files, kafka_backup_v1, oso
from logkeep.kafka.importing.plan import check_topic_name
from logkeep.kafka.importing.reader import ABORTED_UNKNOWN, DatasetReader, DatasetTopic, PartitionReader
from logkeep.kafka.record.dataset_document import DatasetDocument, DatasetLog, noted_in_both, read_dataset_document
from logkeep.kafka.record.dataset_exchange import refuse_exchanging
from logkeep.store.base import ObjectInfo, Store

AUTO = "auto"
_Opener = Callable[[Store, Sequence[ObjectInfo]], DatasetReader]


def is_v1(objects: Sequence[ObjectInfo]) -> bool:
    """Whether the names are those of a kafka-backup-v1 dataset."""
    return any(i.name.count("/") == 1 and file_name(i.name.rpartition("/")[2]) for i in objects)


def _is_oso(objects: Sequence[ObjectInfo]) -> bool:
    return bool(oso.manifests(objects))


_FORMATS: dict[str, tuple[Callable[[Sequence[ObjectInfo]], bool], _Opener]] = {
    kafka_backup_v1.FORMAT: (is_v1, kafka_backup_v1.open_kafka_backup_v1),
    oso.FORMAT: (_is_oso, oso.open_oso),
    **{
        name: (partial(files.is_format, wanted=name), partial(files.open_files, wanted=name))
        for name in (files.AVRO, files.PARQUET, files.TRIVADIS)
    },
}


def open_dataset(store: Store, wanted: str = AUTO) -> DatasetReader:
    """The reader of the dataset in a directory or bucket. Writes nothing.

    Raises UsageError for another thing, FormatTooNew for a later version, Damaged or UnsafeName for links and for names
    that lead elsewhere.
    """
    return open_listed(store, *listed_dataset(store), wanted)


def open_listed(
    store: Store, objects: Sequence[ObjectInfo], document: DatasetDocument | None, wanted: str = AUTO
) -> DatasetReader:
    """The same for a dataset that is listed already."""
    said = document.format if document is not None and wanted == AUTO else ""
    fitting = [name for name, (fits, _) in _FORMATS.items() if wanted in {AUTO, name} and fits(objects)]
    if said in _FORMATS:  # also of a dataset without a record
        fitting = [said]
    if len(fitting) > 1:
        raise UsageError(
            f"it looks like {' and '.join(fitting)}", subject=store.url, remedy="name one of them with --format"
        )
    if not fitting:
        raise UsageError(
            "there is no dataset" if wanted == AUTO else f"there is no dataset in the format {wanted}",
            subject=store.url,
            remedy="name the directory or prefix that the tool wrote to",
        )
    reader = _FORMATS[fitting[0]][1](store, objects)
    reader = _with_document(reader, document) if document is not None else reader
    for topic in reader.topics:
        check_topic_name(topic.name)
    return reader


def _with_document(reader: DatasetReader, document: DatasetDocument) -> DatasetReader:
    """The reader with what the document adds: configs, numbers of partitions, commits, lost ranges, ACLs and quotas."""
    noted = {
        t.name: DatasetTopic(t.name, t.partitions, t.replication_factor, t.configs, t.inherited)
        for t in document.topics
    }
    logs = document.noted
    unknown: tuple[str, ...] = ("leader epochs, producers and transactions",)
    if document.schema == AvroSchema.SEED001:
        unknown = (*unknown, *files.NOT_IN_SEED001)
    if has_aborted := document.isolation == "all":
        unknown = (*unknown, ABORTED_UNKNOWN)
    return replace(
        reader,
        label=msgspec.structs.replace(reader.label, tool="Logkeep", unknown=unknown),
        topics=tuple(noted.get(t.name, t) for t in reader.topics),
        partitions=tuple(_by_logkeep(p) if DatasetLog(p.topic, p.partition) in logs else p for p in reader.partitions),
        noted_topics=noted,
        known_groups=document.groups,
        notes=logs,
        cluster_id=document.cluster_id or reader.cluster_id,
        acls=document.acls,
        quotas=document.quotas,
        has_aborted=has_aborted,
    )


def _by_logkeep(reader: PartitionReader) -> PartitionReader:
    return replace(reader, disjoint=True) if isinstance(reader, kafka_backup_v1.V1PartitionReader) else reader


def listed_dataset(store: Store) -> tuple[list[ObjectInfo], DatasetDocument | None]:
    """All objects of a dataset, and what its document says of them.

    Raises UnsafeName for links and for names that lead elsewhere, Locked while topics are being exchanged, Damaged and
    FormatTooNew for the document.
    """
    before = read_dataset_document(store)
    objects = _listed_objects(store)
    refuse_exchanging(store, objects)
    return objects, noted_in_both(before, read_dataset_document(store))


def _listed_objects(store: Store) -> list[ObjectInfo]:
    foreign = list[str]()
    objects = list(store.list("", foreign=foreign))
    if foreign:
        raise UnsafeName(
            "it is a link, or its name is not one of a dataset",
            subject=foreign[0],
            remedy="remove it, or copy the dataset without it; nothing was changed",
        )
    return objects
