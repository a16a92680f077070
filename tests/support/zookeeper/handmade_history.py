"""A small past made up record by record, with the digests that a server would have written, and views in memory."""

import hashlib
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import BinaryIO

import msgspec

from logkeep.formats.zookeeper.names import epoch_of, log_name, snapshot_name
from logkeep.formats.zookeeper.snapshot_writer import exact_snapshot
from logkeep.formats.zookeeper.transactions import OPEN_ACL, Change, Create, SetData, Transaction
from logkeep.formats.zookeeper.txnlog import header, scan
from logkeep.model.segments import Proof
from logkeep.zookeeper.model.archived import (
    ArchivedLog,
    ArchivedSnapshot,
    BackupView,
    LogFileEnding,
    Member,
    digest_hex,
)
from logkeep.zookeeper.model.tree import Tree, new_tree, rows_of
from logkeep.zookeeper.repair.plan import NewLog, RepairPlan
from tests.support.zookeeper import encoding

BEGAN_MS = 1_700_000_000_000


class Past:
    """Transactions under the given numbers, one after the other: `records` by zxid, `snapshots` by where they stand."""

    def __init__(self, zxids: Iterable[int], *, digests: bool = True) -> None:
        self.zxids = tuple(zxids)
        self.digests = digests
        self.tree = new_tree(with_config=True)
        self.records: dict[int, bytes] = {}
        self.snapshots = {0: self._snapshot()}
        self.digest_at = {0: self.tree.digest}
        self.nodes_at = {0: len(self.tree.nodes)}
        for zxid in self.zxids:
            self.records[zxid] = self._next(zxid)
            self.snapshots[zxid] = self._snapshot()
            self.digest_at[zxid] = self.tree.digest
            self.nodes_at[zxid] = len(self.tree.nodes)

    def _next(self, zxid: int) -> bytes:
        kind, change = _change(self.tree, zxid)
        made = Transaction(1, zxid & 0xFF, zxid, BEGAN_MS + 1000 * len(self.records), kind, change, None)
        self.tree.apply(made)
        return encoding.record(encoding.body(made._replace(digest=self.tree.digest if self.digests else None)))

    def _snapshot(self) -> bytes:
        acls, rows = rows_of(self.tree)
        digest = self.tree.digest if self.digests and self.tree.zxid else None
        return b"".join(exact_snapshot({}, acls, rows, zxid=self.tree.zxid, digest=digest))

    def time_of(self, zxid: int) -> int:
        return BEGAN_MS + 1000 * self.zxids.index(zxid)


def _change(tree: Tree, zxid: int) -> tuple[int, Change]:
    last = zxid & 0xFFFF_FFFF
    if last % 3 and (path := b"/n%x" % (zxid - 1)) in tree.nodes:
        return 5, SetData(path, b"data of %x" % zxid, tree.nodes[path].version + 1)
    return 1, Create(b"/n%x" % zxid, b"made by %x" % zxid, OPEN_ACL, False, tree.nodes[b""].cversion + 1)


@dataclass
class MemoryView:
    """What is kept, in a dictionary: tests damage it as they like."""

    name: str = "memory"
    members: list[Member] = field(default_factory=list)
    snapshots: list[ArchivedSnapshot] = field(default_factory=list)
    logs: list[ArchivedLog] = field(default_factory=list)
    objects: dict[ArchivedLog | ArchivedSnapshot, bytes] = field(default_factory=dict)

    def open(self, kept: ArchivedSnapshot | ArchivedLog) -> BinaryIO:
        if kept not in self.objects:
            kept = self._known(kept)
        return io.BytesIO(self.objects[kept])

    def _known(self, kept: ArchivedSnapshot | ArchivedLog) -> ArchivedSnapshot | ArchivedLog:
        """A survey adds to what it says of logs, and views find them all the same."""
        if isinstance(kept, ArchivedLog):
            for log in self.objects:
                if (
                    isinstance(log, ArchivedLog)
                    and log in self.logs
                    and msgspec.structs.replace(log, borders=kept.borders) == kept
                ):
                    return log
        raise FileNotFoundError(kept.name)

    def salvage(self, kept: ArchivedLog) -> BinaryIO:
        return self.open(kept)

    def unsealed(self, _kept: ArchivedSnapshot | ArchivedLog) -> bool:
        return False

    def add_log(self, records: Sequence[bytes], member: str = "a", **facts: object) -> ArchivedLog:
        content = header() + b"".join(records)
        log = msgspec.structs.replace(kept_log(content, member), **facts)  # any field by its name
        self.logs.append(log)
        self.objects[log] = content
        return log

    def add_snapshot(
        self, content: bytes, zxid: int, member: str = "a", *, fuzzy_end: int | None, bound: int | None = None,
        digest: int | None = None, nodes: int = 0,
    ) -> ArchivedSnapshot:  # fmt: skip
        snapshot = ArchivedSnapshot(
            member=member, history="1", name=snapshot_name(zxid), zxid=zxid, fuzzy_end=fuzzy_end, bound=bound,
            digest_hex=digest_hex(digest), digest_zxid=fuzzy_end or 0 if digest is not None else 0, nodes=nodes,
            size_bytes=len(content), sha256=hashlib.sha256(content).hexdigest(),
        )  # fmt: skip
        self.snapshots.append(snapshot)
        self.objects[snapshot] = content
        return snapshot


def kept_log(content: bytes, member: str) -> ArchivedLog:
    found = scan(io.BytesIO(content))
    assert not found.damage
    return ArchivedLog(
        member=member, history="1", name=log_name(found.first_zxid), first=found.first_zxid, last=found.last_zxid,
        records=found.records, min_time_ms=found.min_time_ms, max_time_ms=found.max_time_ms,
        last_adler=found.last_adler, ending=LogFileEnding.CLEAN, proof=Proof.PROVEN, size_bytes=found.size_bytes,
        sha256=hashlib.sha256(content).hexdigest(), digests=found.with_digests,
    )  # fmt: skip


def backup_of(
    past: Past,
    *,
    snapshot_at: Sequence[int],
    logs: Sequence[Sequence[int]],
    member: str = "a",
    role: str = "standalone",
    proof: Proof = Proof.PROVEN,
) -> MemoryView:
    """One member: exact snapshots where it is said, and its transactions in the given logs."""
    view = MemoryView(members=[Member(name=member, role=role)])
    add_member(view, past, snapshot_at=snapshot_at, logs=logs, member=member, proof=proof)
    return view


def add_member(
    view: MemoryView,
    past: Past,
    *,
    snapshot_at: Sequence[int],
    logs: Sequence[Sequence[int]],
    member: str,
    proof: Proof = Proof.PROVEN,
) -> None:
    for zxid in snapshot_at:
        digest = past.digest_at[zxid] if past.digests and zxid else None
        nodes = past.nodes_at[zxid]
        end = zxid if past.digests and zxid else None
        view.add_snapshot(past.snapshots[zxid], zxid, member, fuzzy_end=end, bound=zxid, digest=digest, nodes=nodes)
    before: int | None = None
    for run in logs:
        entry = before is not None and epoch_of(before) != epoch_of(run[0])
        borders = ((before, run[0]),) if entry else ()
        inner = tuple((a, b) for a, b in pairwise(run) if epoch_of(a) != epoch_of(b))
        view.add_log([past.records[zxid] for zxid in run], member, borders=(*borders, *inner), proof=proof)
        before = run[-1]


def epoch(number: int, count: int) -> list[int]:
    return [(number << 32) + counter for counter in range(1, count + 1)]


def in_memory(view: BackupView) -> MemoryView:
    """A copy of another view."""
    copied = MemoryView(view.name, list(view.members), list(view.snapshots), list(view.logs))
    everything: list[ArchivedLog | ArchivedSnapshot] = [*copied.snapshots, *copied.logs]
    for kept in everything:
        with view.open(kept) as source:
            copied.objects[kept] = source.read()
    return copied


@dataclass
class MemorySink:
    """Puts new objects in the place of damaged ones, in a view of its own."""

    view: MemoryView
    made: dict[ArchivedLog | ArchivedSnapshot, bytes] = field(default_factory=dict)

    def logs_of(self, repair: RepairPlan) -> Sequence[NewLog]:
        return repair.logs

    def new_log(self, repair: RepairPlan, first: int) -> "MemoryWriter":
        return MemoryWriter(self)

    def new_snapshot(self, snapshot: ArchivedSnapshot, source: BackupView) -> None:
        with source.open(snapshot) as stream:
            self.made[snapshot] = stream.read()

    def complete(self, repairs: Sequence[RepairPlan], dropped: Sequence[ArchivedSnapshot]) -> MemoryView:
        gone: list[ArchivedLog | ArchivedSnapshot] = [*(each.of for each in repairs), *dropped]
        new = [kept for kept in self.made if isinstance(kept, ArchivedLog)]
        return MemoryView(
            "mended",
            self.view.members,
            [kept for kept in self.view.snapshots if kept not in gone],
            [*(kept for kept in self.view.logs if kept not in gone), *new],
            {**self.view.objects, **self.made},
        )


@dataclass
class MemoryWriter:
    sink: MemorySink
    content: bytes = b""

    def write(self, data: memoryview | bytes) -> None:
        self.content += data

    def close(self, kept: ArchivedLog) -> None:
        self.sink.made[kept] = self.content

    def abort(self) -> None:
        return
