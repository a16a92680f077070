"""An application in memory: partitions with a log of hand-made batches, which answer creates and archive themselves."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from io import BytesIO
from itertools import count
from typing import TypeVar

import msgspec

from logkeep.checkpoint.archive.copies import continued, copy_request, put_copy
from logkeep.checkpoint.archive.copy_plan import plan_copy
from logkeep.checkpoint.archive.log_names import log_of, snapshots_of
from logkeep.checkpoint.archive.partition_files import copy_log, copy_snapshot
from logkeep.checkpoint.archive.running_application import ApplicationFacts
from logkeep.checkpoint.archive.settle import Settlement, settle
from logkeep.checkpoint.partition_copy import CopyRequest, PartitionCopy
from logkeep.checkpoint.records import CheckpointDocument
from logkeep.checkpoint.state_digest import EMPTY, as_text
from logkeep.checkpoint.steps import Steps, Wait
from logkeep.errors import ClusterUnreachable
from logkeep.formats.plain_batches import BatchRecord, encode_batch
from logkeep.model.segments import Segment
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.format import StoreFacts, create
from logkeep.store.base import Store
from logkeep.store.memory import MemoryStore

APPLICATION = "ab" * 16
T = TypeVar("T")


@dataclass
class VirtualClock:
    now: datetime = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(milliseconds=1)
        return self.now


@dataclass
class World:
    """A repository in memory, virtual time and counted tokens."""

    clock: VirtualClock = field(default_factory=VirtualClock)
    _tokens: Iterator[int] = field(default_factory=lambda: count(1))
    store: Store = field(default_factory=MemoryStore)
    repository: str = ""

    def __post_init__(self) -> None:
        facts = StoreFacts(put_new=True, replace=True, durable=True)
        self.repository = create(self.store, facts, self.clock(), self.tokens).repository

    def tokens(self) -> str:
        return f"{next(self._tokens):016x}"

    @property
    def place(self) -> SourceRef:
        return SourceRef(self.store, self.repository, "shop")

    def drain(self, steps: Steps[T]) -> T:
        """Execute all steps; pauses pass in virtual time."""
        try:
            while True:
                self.passed(next(steps))
        except StopIteration as ended:
            result: T = ended.value
            return result

    def passed(self, step: object) -> None:
        if isinstance(step, Wait):
            self.clock.now += timedelta(seconds=step.seconds)


@dataclass
class ScriptedPartition:
    number: int
    log: list[bytes] = field(default_factory=list)
    end: int = 0
    start: int = 0
    latest: int = 0
    checkpoints: list[tuple[int, int, int]] = field(default_factory=list)

    def work(self, records: int = 3) -> None:
        self.log.append(encode_batch(self.end, 0, [BatchRecord(None, b"record", (), 1000)] * records))
        self.end += records

    def batches(self, start: int, end: int) -> Iterator[bytes]:
        for data in self.log:
            base = int.from_bytes(data[:8], "big")
            if start <= base < end:
                yield data


class ScriptedApplication:
    """`deaf` partitions never see a create; `silent` ones never answer; `lost` creates vanish once; `copying` decides
    which partitions archive."""

    def __init__(self, world: World, partitions: int = 3, history: int = 0) -> None:
        self.world, self.history, self.repository = world, history, world.repository
        self.partitions = [ScriptedPartition(i) for i in range(partitions)]
        self.answered: dict[int, dict[int, CheckpointDocument]] = {}
        self.deaf: set[int] = set()
        self.silent: set[int] = set()
        self.lost: set[int] = set()
        self.copying: set[int] | None = None
        self.down = False
        self.state_digest = as_text(EMPTY)
        """Its logs have no events."""
        self.sent: list[tuple[int, int]] = []
        for partition in self.partitions:
            partition.work()

    def facts(self) -> ApplicationFacts:
        if self.down:
            raise ClusterUnreachable("nothing answers", subject="shop")
        return ApplicationFacts(
            application=APPLICATION,
            name="shop",
            partitions=len(self.partitions),
            history=self.history,
            repository=self.repository,
            latest=max(partition.latest for partition in self.partitions),
        )

    def create(self, partition: int, document: CheckpointDocument) -> None:
        self.sent.append((partition, document.id))
        if partition in self.lost:
            self.lost.discard(partition)
            raise ClusterUnreachable("the request was lost", subject=str(partition))
        if partition not in self.deaf:
            self._process(self.partitions[partition], document)

    def _process(self, partition: ScriptedPartition, document: CheckpointDocument) -> None:
        partition.work(1)
        position = partition.end - 1
        fresh = document.id > partition.latest
        if fresh:
            partition.latest = document.id
            partition.checkpoints.append((document.id, position, partition.end))
        answer = msgspec.structs.replace(
            document, source_position=position, latest=partition.latest, repository=self.repository
        )
        self.answered.setdefault(document.id, {}).setdefault(partition.number, answer)
        copies = self.copying is None or partition.number in self.copying
        if fresh and not document.marker and copies:
            self.world.drain(self.copy(partition.number, document.id))

    def answers(self, checkpoint_id: int) -> Mapping[int, CheckpointDocument]:
        found = self.answered.get(checkpoint_id, {})
        return {partition: answer for partition, answer in found.items() if partition not in self.silent}

    def copy(self, number: int, checkpoint_id: int, term: int = 1, reason: str = "") -> Steps[Settlement]:
        """What the backup actor of a partition does; with `reason` it fails."""
        place, tokens = self.world.place, self.world.tokens
        request = copy_request(place, checkpoint_id)
        assert request is not None
        partition = self.partitions[number]
        position, end = next((p, e) for i, p, e in partition.checkpoints if i == checkpoint_id)
        copy = PartitionCopy(
            partition=number, term=term, history=self.history, nonce=request.nonce, outcome="failed", reason=reason
        )
        segments: tuple[Segment, ...] = ()
        if not reason:
            copy, segments = yield from self.copied(request, partition, copy, position, end)
        yield "receipt"
        put_copy(place, checkpoint_id, copy, segments, tokens(), tokens())
        return (yield from settle(place, checkpoint_id, self.world.clock, tokens))

    def copied(
        self, request: CopyRequest, partition: ScriptedPartition, copy: PartitionCopy, position: int, end: int
    ) -> Steps[tuple[PartitionCopy, tuple[Segment, ...]]]:
        place, tokens = self.world.place, self.world.tokens
        base, branch = continued(place, request, partition.number, partition.checkpoints)
        snapshot = position - 2 if position > 4 else -1
        plan = plan_copy(
            base, history=self.history, local_start=partition.start, snapshot_position=snapshot, cut_end=end
        )
        log = log_of("shop", self.history, partition.number, branch)
        segments = yield from copy_log(place, log, plan.copy_from, end, partition.batches(plan.copy_from, end), tokens)
        if snapshot >= 0 and not plan.snapshot_archived:
            states = snapshots_of("shop", self.history, partition.number, branch)
            state = yield from copy_snapshot(place, states, snapshot, 1000, BytesIO(b"state" * 9), tokens)
            segments = (*segments, state)
        whole = msgspec.structs.replace(
            copy,
            outcome="completed",
            position=position,
            cut_end=end,
            branch=branch,
            log_start=plan.log_start,
            snapshot_position=snapshot,
            state_digest=self.state_digest,
            lost=plan.lost,
            checkpoints=tuple(c for c in partition.checkpoints if plan.log_start <= c[1] < end),
            bytes=sum(s.stored_bytes for s in segments),
        )
        return whole, segments
