"""What `.logkeep/dataset.json` adds to a dataset that Logkeep wrote: configs, counts, commits, lost ranges."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from logkeep.errors import Damaged
from logkeep.kafka.importing.reader import DatasetReader, DatasetTopic, LogNote
from logkeep.kafka.record.dataset_version import DOCUMENT, refuse_newer
from logkeep.kafka.record.documents import GroupRecord, TopicRecord
from logkeep.store.base import ObjectInfo, Store

_LIMIT = 1 << 30
_REMEDY = "remove the document, and the dataset is read without it"


class _NotedLog(msgspec.Struct, frozen=True):
    topic: str
    partition: int
    last: int = -1
    covered: int = -1
    lost: tuple[tuple[int, int], ...] = ()
    pending: tuple[tuple[int, int], ...] = ()


class _Document(msgspec.Struct, frozen=True):
    """Other fields are for those who write the dataset."""

    cluster_id: str
    topics: tuple[TopicRecord, ...] = ()
    logs: tuple[_NotedLog, ...] = ()
    groups: tuple[GroupRecord, ...] = ()


@dataclass(frozen=True)
class _Known:
    document: _Document

    def topic(self, found: DatasetTopic) -> DatasetTopic:
        for each in self.document.topics:
            if each.name == found.name:
                return DatasetTopic(found.name, each.partitions, each.replication_factor, each.configs)
        return found


def with_document(reader: DatasetReader, store: Store, objects: Sequence[ObjectInfo]) -> DatasetReader:
    """The dataset with what its document says; as it is if it has none. Raises Damaged, FormatTooNew."""
    if not any(info.name == DOCUMENT for info in objects):
        return reader
    document = _read(store)
    known = _Known(document)
    return replace(
        reader,
        label=msgspec.structs.replace(
            reader.label, tool="Logkeep", unknown=("leader epochs, producers and transactions",)
        ),
        topics=tuple(map(known.topic, reader.topics)),
        known_groups=document.groups,
        notes={(n.topic, n.partition): LogNote(n.last, n.covered, n.lost, n.pending) for n in document.logs},
        cluster_id=document.cluster_id or reader.cluster_id,
    )


def _read(store: Store) -> _Document:
    try:
        data = store.get(DOCUMENT, _LIMIT)
        refuse_newer(data, DOCUMENT)
        return msgspec.json.decode(data, type=_Document)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise Damaged(f"it is not a document of Logkeep ({error})", subject=DOCUMENT, remedy=_REMEDY) from error
