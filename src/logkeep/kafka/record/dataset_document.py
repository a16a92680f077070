"""The document of a dataset, `.logkeep/dataset.json`: what its format has no place for. For exports and imports.

It names the source, the format and the history of every log, so that no run continues a dataset of something else; it
keeps configs, and commits with their metadata; and the times that prove that no deletion was missed. It is no progress:
where a partition ends is found from its own files.
"""

from typing import Annotated, Final, NamedTuple

import msgspec

from logkeep.errors import Damaged, ObjectMissing, StoreLocationMissing
from logkeep.kafka.record.dataset_version import DOCUMENT, NEWEST, refuse_newer
from logkeep.kafka.record.deletion_times import DeletionTimes
from logkeep.kafka.record.documents import AclRecord, GroupRecord, QuotaRecord, TopicRecord
from logkeep.model.segments import Position
from logkeep.store.base import Store

NOT_A_DOCUMENT: Final = "remove the document: the dataset is then read without what it says"
"""The remedy for a document that cannot be right."""
_LIMIT = 1 << 30
Last = Annotated[int, msgspec.Meta(ge=-1, lt=2**63 - 1)]
"""An offset; -1: none."""


class DatasetLog(NamedTuple):
    """One partition of a topic in a dataset."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}"


class NotedLog(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One log at the end of the last run. A later run may have failed since."""

    topic: str
    partition: Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
    history: str
    archived: bool = False
    """Whether the history is the whole name, as a backup knows it. A cluster knows only the topic id."""
    last: Last = -1
    """The offset of its last record; the other values count only while the dataset ends with it."""
    covered: Last = -1
    """Everything visible below is in the dataset; -1: not known."""
    lost: tuple[tuple[Position, Position], ...] = ()
    """Ranges of offsets that the source removed before they were exported."""
    pending: tuple[tuple[Position, Position], ...] = ()
    """The same, noted when a run began. A range counts as soon as the dataset has a record after it."""
    buried: int = 0
    """Offsets that the source had buried when the log was exported."""
    deletions: DeletionTimes | None = None
    starts: tuple[Position, ...] = ()
    """Offsets of the first records of its files, in formats that have no index of them: a record at each of them is in
    the dataset, unless it is older than the dataset's first one. Files may be missing here."""

    @property
    def log(self) -> DatasetLog:
        return DatasetLog(self.topic, self.partition)

    def lost_between(self, first: int, last: int) -> tuple[tuple[int, int], ...]:
        """The lost ranges of a dataset whose records are from `first` to `last` (-1: none). What is before `first` was
        pruned, and is not lost."""
        known = [span for span in self.lost if span[1] <= last or self.last == last]
        known += [span for span in self.pending if span[1] <= last]
        return tuple(dict.fromkeys(span for span in known if span[1] > first))

    def covered_after(self, last: int) -> int:
        return self.covered if self.last == last else -1


class DatasetDocument(msgspec.Struct, frozen=True, kw_only=True, tag="logkeep-dataset", omit_defaults=True):
    version: int = NEWEST
    format: str
    schema: str = ""
    isolation: str
    cluster_id: str
    topics: tuple[TopicRecord, ...] = ()
    logs: tuple[NotedLog, ...] = ()
    groups: tuple[GroupRecord, ...] = ()
    acls: tuple[AclRecord, ...] | None = None
    quotas: tuple[QuotaRecord, ...] = ()
    configs_known: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    """Topics of which all configs are known, those of the brokers too; absent in a document of an earlier release."""

    @property
    def noted(self) -> dict[DatasetLog, NotedLog]:
        return {each.log: each for each in self.logs}

    @property
    def topics_of_known_configs(self) -> frozenset[str]:
        """In a document of an earlier release, topics whose logs were all read from a cluster: only then it noted the
        time of a cut."""
        if not isinstance(self.configs_known, msgspec.UnsetType):
            return frozenset(self.configs_known)
        others = {each.topic for each in self.logs if each.deletions is None or each.deletions.cut_ms <= 0}
        return frozenset(each.topic for each in self.logs) - others


def noted_in_both(before: DatasetDocument | None, after: DatasetDocument | None) -> DatasetDocument | None:
    """What holds for files that were listed between two readings of the document, although runs wrote meanwhile. Pure.

    A run may have added records or a whole log, a prune or a --rewrite may have removed files.
    """
    if before == after or after is None:
        return after
    known = before.noted if before is not None else {}
    logs = tuple(_in_both(known[note.log], note) for note in after.logs if note.log in known)
    return msgspec.structs.replace(after, logs=logs)


def _in_both(before: NotedLog, after: NotedLog) -> NotedLog:
    starts = tuple(sorted(set(before.starts) & set(after.starts)))
    return msgspec.structs.replace(before if before.last <= after.last else after, starts=starts)


def read_dataset_document(store: Store) -> DatasetDocument | None:
    """The document in a store; None if there is none. Raises Damaged, and FormatTooNew for one of a later release."""
    try:
        data = store.get(DOCUMENT, _LIMIT)
    except (ObjectMissing, StoreLocationMissing):
        return None
    try:
        refuse_newer(data, DOCUMENT)
        return msgspec.json.decode(data, type=DatasetDocument)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        what = f"it is no document of a dataset: {error}"
        raise Damaged(what, subject=DOCUMENT, remedy=NOT_A_DOCUMENT) from error
