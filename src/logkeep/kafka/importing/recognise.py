"""Recognises a dataset by its names and bytes, and opens its reader."""

from collections.abc import Callable, Sequence
from functools import partial

from logkeep.errors import UnsafeName, UsageError
from logkeep.formats.datasets.kafka_backup_v1_reader import file_name
from logkeep.kafka.importing import files, kafka_backup_v1, oso
from logkeep.kafka.importing.dataset_document import with_document
from logkeep.kafka.importing.plan import check_topic_name
from logkeep.kafka.importing.reader import DatasetReader
from logkeep.kafka.record.dataset_exchange import refuse_exchanging
from logkeep.store.base import ObjectInfo, Store

AUTO = "auto"
_Opener = Callable[[Store, Sequence[ObjectInfo]], DatasetReader]


def _is_v1(objects: Sequence[ObjectInfo]) -> bool:
    return any(i.name.count("/") == 1 and file_name(i.name.rpartition("/")[2]) for i in objects)


def _is_oso(objects: Sequence[ObjectInfo]) -> bool:
    return bool(oso.manifests(objects))


_FORMATS: dict[str, tuple[Callable[[Sequence[ObjectInfo]], bool], _Opener]] = {
    kafka_backup_v1.FORMAT: (_is_v1, kafka_backup_v1.open_kafka_backup_v1),
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
    return open_listed(store, listed_objects(store), wanted)


def open_listed(store: Store, objects: Sequence[ObjectInfo], wanted: str = AUTO) -> DatasetReader:
    """The same for objects that are listed already."""
    refuse_exchanging(store, objects)
    fitting = [name for name, (fits, _) in _FORMATS.items() if wanted in {AUTO, name} and fits(objects)]
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
    reader = with_document(_FORMATS[fitting[0]][1](store, objects), store, objects)
    for topic in reader.topics:
        check_topic_name(topic.name)
    return reader


def listed_objects(store: Store) -> list[ObjectInfo]:
    """All objects of a dataset. Raises UnsafeName for links and for names that lead elsewhere."""
    foreign = list[str]()
    objects = list(store.list("", foreign=foreign))
    if foreign:
        raise UnsafeName(
            "it is a link, or its name is not one of a dataset",
            subject=foreign[0],
            remedy="remove it, or copy the dataset without it; nothing was changed",
        )
    return objects
