"""Small backups and directories of servers, made without a server: for decisions and for crashes."""

import hashlib
import io
import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from logkeep.formats.zookeeper.jute import packed_buffer, packed_int
from logkeep.formats.zookeeper.names import log_name, snapshot_name
from logkeep.formats.zookeeper.snapshot_writer import exact_snapshot
from logkeep.formats.zookeeper.transactions import HEADER, TransactionType, decode
from logkeep.model.segments import Proof
from logkeep.zookeeper.model.archived import ArchivedLog, ArchivedSnapshot, LogFileEnding, Member, digest_hex
from logkeep.zookeeper.model.tree import Tree, new_tree, rows_of
from logkeep.zookeeper.timeline.holdings import Holdings
from logkeep.zookeeper.timeline.plan import RestorePath, Target, ToEnd, plan

_OPEN = packed_int(1) + packed_int(31) + packed_buffer(b"world") + packed_buffer(b"anyone")
SESSION = 0x100001


def create(zxid: int, path: bytes, data: bytes = b"", *, ephemeral: bool = False) -> bytes:
    """The body of a transaction."""
    head = HEADER.pack(SESSION, 0, zxid, 1_700_000_000_000 + zxid % 1000, TransactionType.CREATE)
    return head + packed_buffer(path) + packed_buffer(data) + _OPEN + bytes([ephemeral]) + packed_int(zxid & 0xFFFF)


def create_session(zxid: int) -> bytes:
    return HEADER.pack(SESSION, 0, zxid, 1_700_000_000_000, TransactionType.CREATE_SESSION) + packed_int(30_000)


def create_special(zxid: int, path: bytes, ttl_ms: int | None = None) -> bytes:
    """A container; or a node with a time to live."""
    kind = TransactionType.CREATE_CONTAINER if ttl_ms is None else TransactionType.CREATE_TTL
    body = HEADER.pack(SESSION, 0, zxid, 1_700_000_000_000, kind) + packed_buffer(path) + packed_buffer(b"") + _OPEN
    return body + packed_int(zxid & 0xFFFF) + (b"" if ttl_ms is None else struct.pack(">q", ttl_ms))


def set_acl(zxid: int, path: bytes) -> bytes:
    """Only one user may do anything from now on."""
    body = HEADER.pack(SESSION, 0, zxid, 1_700_000_000_000, TransactionType.SET_ACL) + packed_buffer(path)
    return body + packed_int(1) + packed_int(31) + packed_buffer(b"digest") + packed_buffer(b"a:b") + packed_int(1)


def log_bytes(bodies: Iterable[bytes]) -> bytes:
    records = (struct.pack(">qi", zlib.adler32(body), len(body)) + body + b"B" for body in bodies)
    return struct.pack(">4siq", b"ZKLG", 2, 0) + b"".join(records)


def tree_after(bodies: Iterable[bytes]) -> Tree:
    tree = new_tree(with_config=True)
    for body in bodies:
        tree.apply(decode(body))
    return tree


def snapshot_of(tree: Tree) -> bytes:
    return b"".join(exact_snapshot(tree.sessions, *rows_of(tree), zxid=tree.zxid, digest=tree.digest))


@dataclass
class MadeView:
    """A backup in memory."""

    name: str = "made"
    members: Sequence[Member] = (Member(name="one", version="3.9.5", role="standalone"),)
    snapshots: list[ArchivedSnapshot] = field(default_factory=list)
    logs: list[ArchivedLog] = field(default_factory=list)
    stored: dict[str, bytes] = field(default_factory=dict)

    def open(self, kept: ArchivedSnapshot | ArchivedLog) -> BinaryIO:
        return io.BytesIO(self.stored[kept.name])

    def salvage(self, kept: ArchivedLog) -> BinaryIO:
        return self.open(kept)

    def unsealed(self, _kept: ArchivedSnapshot | ArchivedLog) -> bool:
        return False

    def add_snapshot(self, name: str, tree: Tree, content: bytes) -> None:
        self.stored[name] = content
        self.snapshots.append(
            ArchivedSnapshot(
                member="one",
                history="1",
                name=name,
                zxid=tree.zxid,
                fuzzy_end=tree.zxid,
                bound=None,
                digest_hex=digest_hex(tree.digest),
                digest_zxid=tree.zxid,
                nodes=len(tree.nodes),
                size_bytes=len(content),
                sha256=hashlib.sha256(content).hexdigest(),
            )
        )

    def add_log(self, bodies: Sequence[bytes]) -> None:
        found, content = [decode(body) for body in bodies], log_bytes(bodies)
        name = log_name(found[0].zxid)
        self.stored[name] = content
        self.logs.append(
            ArchivedLog(
                member="one",
                history="1",
                name=name,
                first=found[0].zxid,
                last=found[-1].zxid,
                records=len(found),
                min_time_ms=min(t.time_ms for t in found),
                max_time_ms=max(t.time_ms for t in found),
                last_adler=zlib.adler32(bodies[-1]),
                ending=LogFileEnding.CLEAN,
                proof=Proof.PROVEN,
                size_bytes=len(content),
                sha256=hashlib.sha256(content).hexdigest(),
                digests=False,
            )
        )

    def path(self, target: Target | None = None) -> RestorePath:
        holdings = Holdings(tuple(self.snapshots), tuple(self.logs), tuple(self.members))
        found = plan(holdings, target or ToEnd(), _NoMoments())
        assert isinstance(found, RestorePath), found
        return found


class _NoMoments:
    def time_of(self, log: ArchivedLog, zxid: int) -> int | None:
        return None

    def first_later(self, log: ArchivedLog, first: int, last: int, time_ms: int) -> tuple[int, int] | None:
        return None


def made_backup(epoch: int = 0, more: Sequence[bytes] = ()) -> MadeView:
    """A snapshot and a log behind it: a session with an ephemeral node, and some others."""
    first = epoch << 32
    bodies = [create_session(first + 1), create(first + 2, b"/a", b"one"), create(first + 3, b"/a/b", b"two")]
    later = [create(first + 4, b"/c", b"three"), create(first + 5, b"/gone", b"", ephemeral=True), *more]
    view = MadeView()
    tree = tree_after(bodies)
    view.add_snapshot(snapshot_name(tree.zxid), tree, snapshot_of(tree))
    view.add_log(later)
    return view


def snapshot_without_acls(bodies: Sequence[bytes], path: bytes) -> bytes:
    """As a server writes it while a node gets new ACLs: it names a list that it does not hold."""
    tree = tree_after(bodies)
    acls, rows = rows_of(tree)
    held = {number: each for number, each in acls.items() if each != tree.nodes[path].acls}
    named = (row._replace(acl_id=7) if row.path == path else row for row in rows)
    return b"".join(exact_snapshot(tree.sessions, held, named, zxid=tree.zxid, digest=tree.digest))


def old_server(data_dir: Path, log_dir: Path | None = None, *, epoch: int = 0, epochs: bool = False) -> None:
    """The directories of a server that went on a while."""
    first = epoch << 32
    bodies = [create(first + n, b"/old%d" % n, b"x" * n) for n in range(1, 41)]
    for path in (data_dir, log_dir or data_dir):
        (path / "version-2").mkdir(parents=True, exist_ok=True)
    tree = tree_after(bodies[:20])
    (data_dir / "version-2" / snapshot_name(tree.zxid)).write_bytes(snapshot_of(tree))
    logs = (log_dir or data_dir) / "version-2"
    (logs / log_name(first + 1)).write_bytes(log_bytes(bodies[:20]))
    (logs / log_name(first + 21)).write_bytes(log_bytes(bodies[20:]) + bytes(1000))
    (data_dir / "myid").write_text("1\n")
    if epochs:
        for name in ("currentEpoch", "acceptedEpoch"):
            (data_dir / "version-2" / name).write_text(str(epoch))


def files(directory: Path) -> dict[str, bytes]:
    """Every file below it, by name."""
    return {str(p.relative_to(directory)): p.read_bytes() for p in sorted(directory.rglob("*")) if p.is_file()}
