"""The public Python API: backups of Kafka topics as Arrow tables.

    with logkeep.open("s3://bucket/backups") as repository:
        orders = repository.backup("latest").topic("orders").scan(since=datetime(2026, 11, 14, tzinfo=UTC))
        duckdb.sql("SELECT count(*) FROM orders")

A scan is lazy and can be read any number of times; it opens and reads nothing before its first batch is asked for.
Backups are held, and not pruned, until the repository is closed.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import TracebackType

import pyarrow as pa

from logkeep.errors import UsageError
from logkeep.formats.datasets.arrow import SCHEMA
from logkeep.kafka.record.backup_view import KafkaBackupView
from logkeep.kafka.scan.open_backup import open_backup
from logkeep.kafka.scan.plan import ScanSelection, lost_offsets, plan_scan, selected_cuts
from logkeep.kafka.scan.read import read_range
from logkeep.kafka.scan.values import ScanIsolation
from logkeep.model.ranges import Range
from logkeep.model.time import random_token, utc_now
from logkeep.repository.access import open_repository
from logkeep.repository.backups.source import view
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.owner import this_process
from logkeep.store.access import open_store
from logkeep.store.retrying import RetryingStore, RetryLimits

COLUMNS = ("partition", *SCHEMA.names)
_AWARE = "pass an aware datetime, such as datetime(2026, 11, 14, tzinfo=UTC), or milliseconds since 1970"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OFFSETS = "pass {partition: (first, end)} with partitions of the topic, first not above end"
_PARTITION = pa.field("partition", pa.int32(), nullable=False)
_OPERATION = "python"

Moment = datetime | int
"""An aware time, or milliseconds since 1970."""


def open_backups(url: str, source: str | None = None) -> "BackupRepository":
    """Open a repository for reading; `source` may be left out where it has one. Called as `logkeep.open`."""
    store = RetryingStore(open_store(url), RetryLimits())
    return BackupRepository(open_repository(store).choose(source))


class BackupRepository:
    """One source of a repository. Close it, or use it in a `with`: until then its opened backups are held."""

    def __init__(self, place: SourceRef) -> None:
        self._place = place
        self._held = ExitStack()
        self._closed = False

    def __repr__(self) -> str:
        return f"BackupRepository(url={self._place.store.url!r}, source={self.source!r})"

    @property
    def source(self) -> str:
        return self._place.source

    def backups(self) -> list[int]:
        """The ids of all completed backups, the newest last."""
        self._check_open()
        return [entry.id for entry in view(self._place, utc_now(), this_process("reader")).folded.completed]

    def backup(self, which: str | int | datetime = "latest") -> "ArchivedBackup":
        """The backup with this id, or the newest one that was complete at a time. It is held until this is closed.

        Raises UnknownBackup, Damaged, and UsageError for a backup that is not one of a Kafka cluster.
        """
        self._check_open()
        wanted = which if isinstance(which, datetime) else str(which)
        if isinstance(wanted, datetime):
            _milliseconds(wanted)
        opened = self._held.enter_context(open_backup(self._place, wanted, _OPERATION, utc_now, random_token))
        return ArchivedBackup(opened, self._check_open)

    def close(self) -> None:
        """Release the backups. Tables of them can no longer be read."""
        self._closed = True
        self._held.close()

    def _check_open(self) -> None:
        if self._closed:
            raise UsageError("the repository is closed", remedy="read inside the `with` block")

    def __enter__(self) -> "BackupRepository":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@dataclass(frozen=True)
class ArchivedBackup:
    """An opened backup."""

    _view: KafkaBackupView = field(repr=False)
    _check_open: Callable[[], None] = field(repr=False)

    @property
    def id(self) -> int:
        return self._view.entry.id

    def __repr__(self) -> str:
        return f"ArchivedBackup(id={self.id})"

    def topics(self) -> list[str]:
        return sorted({cut.log.name for cut in self._view.manifest.cut})

    def topic(self, name: str) -> "ArchivedTopic":
        """Raises UsageError if the backup does not have it."""
        cuts = selected_cuts(self._view, ScanSelection(topics=(name,)))
        return ArchivedTopic(name, tuple(sorted(cut.log.partition for cut in cuts)), self._view, self._check_open)


@dataclass(frozen=True)
class ArchivedTopic:
    """A topic of a backup."""

    name: str
    partitions: tuple[int, ...]
    _view: KafkaBackupView = field(repr=False)
    _check_open: Callable[[], None] = field(repr=False)

    def scan(
        self,
        *,
        partitions: Iterable[int] | None = None,
        offsets: Mapping[int, tuple[int, int]] | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        columns: Iterable[str] | None = None,
        isolation: str = "committed",
    ) -> "TopicScan":
        """A table of its records, as a restore would bring them back. Nothing is read yet.

        `offsets` has a range `(first, end)` for partitions of which only a part is wanted; a partition that it does not
        name is read completely. `since` and `until` are times of records, the second one excluded. `columns` are some
        of `logkeep.python_api.COLUMNS`. With `isolation="all"` records of aborted and open transactions are included.
        """
        if isinstance(columns, str):
            raise UsageError("columns must be a list, not one name", remedy=f"pass a list, such as [{columns!r}]")
        if isinstance(partitions, int):
            raise UsageError("partitions must be a list, not one number", remedy=f"pass a list, such as [{partitions}]")
        if any(isinstance(span, int) for span in (offsets or {}).values()):
            raise UsageError("offsets has a number where a range belongs", remedy=_OFFSETS)
        chosen = COLUMNS if columns is None else tuple(columns)
        if not chosen:
            raise UsageError("no column is named", remedy=f"the columns are: {', '.join(COLUMNS)}")
        for number, (first, end) in (offsets or {}).items():
            if number not in self.partitions or first > end:
                raise UsageError(f"offsets has no range of partition {number}: {(first, end)}", remedy=_OFFSETS)
        for name in chosen:
            if name not in COLUMNS:
                raise UsageError(f"there is no column {name!r}", remedy=f"the columns are: {', '.join(COLUMNS)}")
        if isolation not in list(ScanIsolation):
            raise UsageError(f"there is no isolation {isolation!r}", remedy="use 'committed' or 'all'")
        selection = ScanSelection(
            topics=(self.name,),
            partitions=None if partitions is None else frozenset(partitions),
            offsets={(self.name, number): Range(*some) for number, some in (offsets or {}).items()},
            since_ms=_milliseconds(since),
            until_ms=_milliseconds(until),
            isolation=ScanIsolation(isolation),
        )
        found = TopicScan(chosen, self._view, selection, self._check_open)
        for gap in found.gaps:
            warnings.warn(
                f"{self.name}/{gap.partition}: offsets {gap.first} to {gap.end - 1} were lost before they could be "
                f"archived: {gap.reason}",
                LostOffsetsWarning,
                stacklevel=2,
            )
        return found


class LostOffsetsWarning(UserWarning):
    """A scan lacks offsets that the source removed before they could be archived."""


@dataclass(frozen=True)
class LostOffsets:
    """Offsets `[first, end)` of a partition that the source removed before they could be archived."""

    partition: int
    first: int
    end: int
    reason: str


@dataclass(frozen=True)
class TopicScan:
    """Records of a topic as a table: for pyarrow, pandas, polars, DuckDB and all that read Arrow's C stream."""

    columns: tuple[str, ...]
    _view: KafkaBackupView = field(repr=False)
    _selection: ScanSelection = field(repr=False)
    _check_open: Callable[[], None] = field(repr=False)

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([_PARTITION if name == "partition" else SCHEMA.field(name) for name in self.columns])

    @property
    def gaps(self) -> tuple[LostOffsets, ...]:
        """What is missing in the offsets of this scan, by partition and offset."""
        found = lost_offsets(self._view, self._selection)
        return tuple(
            sorted(
                (LostOffsets(gap.log.partition, gap.start, gap.end, gap.reason) for gap in found),
                key=lambda gap: (gap.partition, gap.first),
            )
        )

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """By partition and offset, some thousand records at a time. Raises Damaged, or a StoreError."""
        self._check_open()
        wanted = {name for name in self.columns if name != "partition"} or {"offset"}
        for each in plan_scan(self._view, self._selection):
            for batch in read_range(each, columns=wanted):
                self._check_open()
                yield self._with_partition(batch, each.log.partition)

    def to_arrow(self) -> pa.Table:
        """All of it, in memory."""
        return pa.Table.from_batches(self.to_batches(), self.schema)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """A new stream on every call. It reads nothing before its first batch is asked for."""
        reader = pa.RecordBatchReader.from_batches(self.schema, self.to_batches())
        return reader.__arrow_c_stream__(requested_schema)

    def _with_partition(self, batch: pa.RecordBatch, partition: int) -> pa.RecordBatch:
        arrays = [
            pa.repeat(pa.scalar(partition, pa.int32()), batch.num_rows) if name == "partition" else batch[name]
            for name in self.columns
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _milliseconds(moment: Moment | None) -> int | None:
    if moment is None or isinstance(moment, int):
        return moment
    if not isinstance(moment, datetime):
        raise UsageError(f"{moment!r} is not a time", remedy=_AWARE)
    if moment.tzinfo is None:
        raise UsageError("the time has no time zone", remedy=_AWARE)
    return -((_EPOCH - moment) // timedelta(milliseconds=1))  # a part of a millisecond counts as a whole one
