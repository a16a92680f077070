"""Restores an application on Kafka: what a plan of `kafka restore` needs, and the records in transit appended again."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from logkeep.application.kafka.cluster_topics import ClusterTopics
from logkeep.application.kafka.cut_document import ApplicationLog, ParticipantCut
from logkeep.application.kafka.headers import Stamps
from logkeep.checkpoint.records import MessageSource
from logkeep.errors import Damaged
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.record.backup_view import KafkaBackupView
from logkeep.kafka.restore.plan.selection import RestoreSelection
from logkeep.kafka.scan.plan import ScanSelection, plan_scan
from logkeep.kafka.scan.read import read_range
from logkeep.kafka.topic_selection import exact_pattern
from logkeep.model.ranges import Range
from logkeep.repository.backups.manifest import LogCut

if TYPE_CHECKING:
    import pyarrow as pa


class AppendedRecords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Records in transit of one log: their old offsets in order, appended from `first` on."""

    topic: str
    partition: int
    old: tuple[int, ...]
    first: int
    already: int = 0
    """Of `old`, how many an interrupted restore had appended before."""


def restore_selection(cut: ParticipantCut, archived: Iterable[LogCut]) -> RestoreSelection:
    """`[start, max(P, B))` of every log of the application. Retention may have removed more than that: then nothing.

    The marker of a transaction may be after P and B. Its records before them belong to the cut all the same.
    """
    starts = {(c.log.name, c.log.partition): c.start for c in archived}
    return RestoreSelection(
        include=tuple(dict.fromkeys(exact_pattern(log.topic) for log in cut.logs)),
        until_offsets=tuple(
            f"{log.topic}:{log.partition}={max(log.kept_to, starts.get((log.topic, log.partition), 0))}"
            for log in cut.logs
        ),
        settled=True,
    )


@dataclass(frozen=True)
class TransitRestore:
    """Appends the records in transit to restored topics. Repeating it appends nothing twice."""

    view: KafkaBackupView
    cut: ParticipantCut
    topics: ClusterTopics
    preserved: bool
    """Whether restored records have their old offsets; otherwise the whole target is searched for appended ones."""

    def run(self) -> tuple[AppendedRecords, ...]:
        return tuple(self._append(log) for log in self.cut.logs if log.in_transit)

    def _append(self, log: ApplicationLog) -> AppendedRecords:
        target, there = TopicPartition(log.topic, log.partition), self._appended_sources(log)
        first, already, appended = -1, 0, list[int]()
        for batch in self._archived(log):
            left = [i for i, source in enumerate(self._sources(batch)) if source not in there]
            already += batch.num_rows - len(left)
            if left:
                offset = self.topics.append(target, batch.take(left))
                first = offset if first < 0 else first
            appended += batch.column("offset").to_pylist()
        if tuple(appended) != log.in_transit:
            raise Damaged("records in transit are missing from the archive", subject=str(target))
        return AppendedRecords(log.topic, log.partition, log.in_transit, first, already)

    def _archived(self, log: ApplicationLog) -> Iterator["pa.RecordBatch"]:
        import pyarrow as pa  # noqa: PLC0415 - imported when it is needed
        import pyarrow.compute as pc  # noqa: PLC0415

        wanted = pa.array(log.in_transit, pa.int64())
        span = Range(log.in_transit[0], log.in_transit[-1] + 1)
        only = ScanSelection(
            (log.topic,), partitions=frozenset({log.partition}), offsets={(log.topic, log.partition): span}
        )
        for planned in plan_scan(self.view, only):
            for batch in read_range(planned):
                yield batch.filter(pc.is_in(batch.column("offset"), wanted))

    def _appended_sources(self, log: ApplicationLog) -> set[MessageSource | None]:
        """What an interrupted restore has appended."""
        target = TopicPartition(log.topic, log.partition)
        bounds = self.topics.bounds([target])[target]
        start, end = max(bounds.start, log.kept_to if self.preserved else 0), bounds.last_stable
        return {source for batch in self.topics.batches(target, start, end) for source in self._sources(batch)}

    def _sources(self, batch: "pa.RecordBatch") -> list[MessageSource | None]:
        stamps = Stamps.of(self.cut.application)
        rows = batch.column("headers").to_pylist()
        return [stamps.source_of([(h["key"].decode("utf-8", "replace"), h["value"]) for h in row]) for row in rows]
