"""Backups of a compacted topic made by hand, without a broker, and what each of them restores."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from logkeep.engine.inline import InlineEngine
from logkeep.formats.compaction.barriers import Barrier
from logkeep.formats.kafka.batches import TRANSACTIONAL, walk
from logkeep.formats.kafka.buried_offsets import BuriedOffsets
from logkeep.kafka.backup.burial import bury
from logkeep.kafka.fold.plan import FoldOptions
from logkeep.kafka.fold.run import FoldedResult, LogFolding
from logkeep.kafka.logs.burials import read_buried
from logkeep.kafka.record.deletion_times import DeletionTimes
from logkeep.kafka.record.documents import (
    ROLE,
    ClusterRecord,
    CommitRecord,
    GroupRecord,
    PartitionRecord,
    TopicRecord,
)
from logkeep.kafka.record.folded_backups import folded_ends
from logkeep.kafka.record.stored_record import put_record
from logkeep.model.clock_time import ClockName
from logkeep.model.ids import BackupId
from logkeep.model.segments import Collection, LogName
from logkeep.model.time import Clock, TokenSource, random_token, utc_now
from logkeep.repository.backups.attachments import put_attachment
from logkeep.repository.backups.backup import FinishedRun, begin
from logkeep.repository.backups.burials import burials_by_log
from logkeep.repository.backups.content import PartReader, rows_of, served_parts
from logkeep.repository.backups.manifest import AttachmentRef, KnownGap, LogCut
from logkeep.repository.backups.source import ensure_source, read_manifest
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.fold import Folded
from logkeep.repository.chain.write_session import writing
from logkeep.repository.segments.reader import StoredLog
from logkeep.repository.segments.writer import SegmentLimits, SegmentWriter
from tests.support.kafka.fold_logs import OneBatch, latest_per_key, parsed
from tests.support.kafka.slow_records import Slow, batch_of
from tests.support.kafka.whole_backups import new_place

TOPIC_ID = "b" * 32
Pairs = Sequence[tuple[bytes | None, bytes | None]]


@dataclass
class CompactedSource:
    """One topic with a partition or two; the last batch of each is at its end."""

    place: SourceRef
    partitions: int = 1
    clock: Clock = utc_now
    tokens: TokenSource = random_token
    topic: str = "state"
    packed: bool = False
    """Whether records are packed, as by this release, or plain, as by its first ones."""
    configs: dict[str, str] = field(default_factory=lambda: {"cleanup.policy": "compact"})
    groups: dict[str, int] = field(default_factory=dict)
    """By name, the offset in partition 0."""
    logs: dict[int, list[bytes]] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)
    archived: dict[int, int] = field(default_factory=dict)
    """By partition, how many batches are archived."""
    lost: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    """By partition, offsets that no backup has."""
    time_ms: int = 1_700_000_000_000
    proven: bool = True

    def log(self, partition: int = 0) -> LogName:
        return LogName(Collection.TOPICS, self.topic, TOPIC_ID, partition)

    def write(self, pairs: Pairs, partition: int = 0, **fields: int) -> int:
        """One batch; returns its first offset."""
        base = self.ends.get(partition, 0)
        records = [Slow(number, 0, key, value) for number, (key, value) in enumerate(pairs)]
        times = {"base_time_ms": self.time_ms, "max_time_ms": self.time_ms}
        self.logs.setdefault(partition, []).append(batch_of(base, records, None, **(times | fields)))
        self.ends[partition] = base + len(pairs)
        return base

    def lose(self, count: int, partition: int = 0) -> None:
        """The source removes as many records, which were written after the last backup."""
        assert self.archived.get(partition, 0) == len(self.logs.get(partition, []))
        first = self.ends.get(partition, 0)
        self.lost.setdefault(partition, []).append((first, first + count))
        self.ends[partition] = first + count

    def transaction(self, pairs: Pairs, producer: int, commits: bool | None, partition: int = 0) -> None:
        """A transaction that commits, aborts, or stays open."""
        self.write(pairs, partition, attributes=TRANSACTIONAL, producer=producer)
        if commits is not None:
            self.end(producer, commits, partition)

    def end(self, producer: int, commits: bool, partition: int = 0) -> None:
        marker = b"\0\0\0" + bytes([commits])
        self.write([(marker, bytes(6))], partition, attributes=TRANSACTIONAL | 0x20, producer=producer)

    def back_up(
        self, bury_offsets: Sequence[int] = (), attach: Callable[[BackupId], AttachmentRef] | None = None
    ) -> int:
        """`attach` stores one more attachment."""
        with writing(self.place, "backup", self.clock, self.tokens) as session:
            ongoing = begin(session, ensure_source(self.place, "kafka", {"cluster_id": "by-hand"}, self.clock()))
            if bury_offsets:
                bury(session, ongoing.id, {self.log(): BuriedOffsets.of(np.array(bury_offsets, np.int64))})
            new, cut, gaps = [], [], []
            for partition in range(self.partitions):
                batches = self.logs.get(partition, [])
                done = self.archived.get(partition, 0)
                lost = self.lost.get(partition, [])
                gaps += [KnownGap(self.log(partition), first, end, "retention removed it") for first, end in lost]
                start = sum(walk(b).batches.headers["last_offset_delta"][0] + 1 for b in batches[:done])
                start += sum(end - first for first, end in lost)
                writer = SegmentWriter(
                    self.place, self.log(partition), int(start), SegmentLimits(1 << 20), 0, self.tokens
                )
                data = b"".join(batches[done:])
                if data:
                    writer.write(memoryview(data), walk(data).batches)
                end = self.ends.get(partition, 0)
                writer.finish(end)
                new += writer.segments
                cut.append(LogCut(self.log(partition), 0, end))
                self.archived[partition] = len(batches)
            found = self._record(ongoing.id, session.folded)
            record = (
                put_record(self.place, ongoing.id, found, self.tokens())
                if self.packed
                else put_attachment(self.place, ongoing.id, ROLE, found, self.tokens())
            )
            refs = [record, *([attach(ongoing.id)] if attach is not None else [])]
            return ongoing.complete(FinishedRun(cut=cut, new=new, gaps=gaps, attachments=refs)).id

    def _record(self, backup_id: int, folded: Folded) -> ClusterRecord:
        commits = [(name, CommitRecord(self.topic, 0, at, at, 0, "")) for name, at in self.groups.items()]
        return ClusterRecord(
            version=3,
            repository=self.place.repository,
            source=self.place.source,
            id=backup_id,
            cluster_id="by-hand",
            topics=(TopicRecord(self.topic, TOPIC_ID, False, self.partitions, 1, dict(self.configs)),),
            logs=tuple(self._partition(p, backup_id, folded) for p in range(self.partitions)),
            open_transactions=(),
            groups=tuple(GroupRecord(name, "classic", "Empty", "consumer", (c,)) for name, c in commits),
            acls=None,
            quotas=(),
        )

    def _partition(self, partition: int, backup_id: int, folded: Folded) -> PartitionRecord:
        buried = sum(b.offsets for b in folded.burials(backup_id) if b.log == self.log(partition))
        unproven = (-1, -1) if self.proven else (0, 5)
        times = DeletionTimes(
            cut_ms=int(self.clock().timestamp() * 1000), clock=ClockName.OWN, retention_ms=86_400_000, buried=buried,
            unproven_from=unproven[0], unproven_to=unproven[1],
        )  # fmt: skip
        end = self.ends.get(partition, 0)
        folded_to = folded_ends(folded, None).get(self.log(partition), 0)
        return PartitionRecord(
            self.topic, partition, TOPIC_ID, 0, end, end, 0, deletions=times, folded_to=folded_to
        )  # fmt: skip

    def fold(self, **options: object) -> list[FoldedResult]:
        wish = FoldOptions(**options)  # type: ignore[arg-type]  # a test's own options
        return self.folding().run(wish, lambda _: InlineEngine())

    def folding(self) -> LogFolding:
        return LogFolding(self.place, self.clock, self.tokens)

    def batches(self, backup_id: int, partition: int = 0) -> list[OneBatch]:
        """What the repository has of a backup, read by its manifest."""
        folded = read_chain(self.place)
        entry = folded.entry(backup_id)
        assert entry is not None, f"backup {backup_id} is not there"
        manifest = read_manifest(self.place, entry)
        rows = rows_of(PartReader(self.place), manifest, served_parts(manifest, folded)).to_segments()
        mine = sorted((r for r in rows if r.log == self.log(partition) and r.has_object), key=lambda r: r.start)
        return [b for row in mine for b in parsed(bytes(StoredLog.of(self.place, row).whole(1 << 30)))]

    def latest(self, backup_id: int, partition: int = 0) -> dict[object, tuple[object, ...]]:
        """What a restore of the backup leaves in the topic, by key."""
        folded = read_chain(self.place)
        entry = folded.entry(backup_id)
        assert entry is not None
        log = self.log(partition)
        cut = next(c for c in read_manifest(self.place, entry).cut if c.log == log)
        burials = burials_by_log(folded, backup_id, [log]).get(log, ())
        buried = read_buried(self.place, [b.object for b in burials])
        hidden = set(np.arange(cut.end)[buried.hides(np.arange(cut.end))].tolist()) if buried is not None else set()
        return latest_per_key(self.batches(backup_id, partition), Barrier(backup_id, cut.start, cut.end), hidden)

    def values(self, backup_id: int, partition: int = 0) -> dict[object, object]:
        return {key: record[3] for key, record in self.latest(backup_id, partition).items()}

    def all_latest(self) -> dict[tuple[int, int], dict[object, tuple[object, ...]]]:
        kept = [entry.id for entry in read_chain(self.place).completed]
        return {(i, p): self.latest(i, p) for i in kept for p in range(self.partitions)}


def source_with_a_gap(root: Path) -> CompactedSource:
    """Two partitions, two backups; the second one lacks offsets 2 to 6 of partition 1."""
    made = CompactedSource(new_place(root), partitions=2, packed=True)
    for partition in (0, 1):
        made.write([(b"k1", b"a"), (b"k2", b"b")], partition)
    made.back_up()
    made.lose(5, 1)
    made.write([(b"k3", b"c"), (b"k4", b"d")], 1)
    made.back_up()
    return made
