"""Directories as a server leaves them, made byte by byte: for cases that no real server can be brought to in a moment.

Whether the bytes are right is judged by real servers elsewhere; here they only need to be whole, torn or damaged.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from logkeep.engine.inline import InlineEngine
from logkeep.formats.zookeeper.names import log_name, snapshot_name
from logkeep.formats.zookeeper.snapshot_writer import exact_snapshot
from logkeep.formats.zookeeper.transactions import OPEN_ACL, Create, SetData, Transaction, decode
from logkeep.model.segments import Codec
from logkeep.model.time import random_token, utc_now
from logkeep.model.work import EngineFor
from logkeep.zookeeper.backup.rounds import RoundSettings
from logkeep.zookeeper.backup.run import ZooKeeperBackupDone, ZooKeeperBackupOptions, back_up
from logkeep.zookeeper.backup.server_files import MemberPlace
from logkeep.zookeeper.bundle.layout import INFO, METADATA
from logkeep.zookeeper.bundle.view import BundleView
from logkeep.zookeeper.bundle.writer import new_bundle
from logkeep.zookeeper.model.sink import BackupSink
from logkeep.zookeeper.model.tree import new_tree, rows_of
from logkeep.zookeeper.server.four_letter import ServerState
from tests.support.zookeeper.encoding import LOG_HEADER, body, record

MIB = 1 << 20


def inline(_size_bytes: int) -> InlineEngine:
    return InlineEngine()


INLINE: EngineFor = inline


def txn(zxid: int, data: bytes = b"data") -> bytes:
    """A whole record of one transaction."""
    return record(
        body(Transaction(7, 1, zxid, 1_700_000_000_000 + zxid % 1000, 5, SetData(b"/zookeeper", data, 1), None))
    )


def created(zxid: int) -> bytes:
    """A whole record of one that creates a node of its own."""
    change = Create(f"/n{zxid}".encode(), b"", OPEN_ACL, False, -1)
    return record(body(Transaction(7, 1, zxid, 1_700_000_000_000 + zxid, 1, change, None)))


@dataclass
class MadeServer:
    """One server's directories. `zxid`: what it says when it is asked; None: it does not answer."""

    root: Path
    zxid: int | None = None
    log_apart: bool = False
    mode: str = "standalone"
    asked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.snapshot_dir.mkdir(parents=True)
        self.log_dir.mkdir(parents=True, exist_ok=True)

    @property
    def snapshot_dir(self) -> Path:
        return self.root / "data" / "version-2"

    @property
    def log_dir(self) -> Path:
        return self.root / "logs" / "version-2" if self.log_apart else self.snapshot_dir

    def log(
        self,
        zxids: Sequence[int],
        *,
        padding: int = MIB,
        tail: bytes = b"",
        data: bytes = b"data",
        creating: bool = False,
    ) -> Path:
        path = self.log_dir / log_name(zxids[0])
        with path.open("wb") as file:
            records = [created(zxid) if creating else txn(zxid, data) for zxid in zxids]
            file.write(LOG_HEADER + b"".join(records) + tail)
            if padding:
                file.truncate(file.tell() + padding)
        return path

    def add(self, path: Path, zxids: Sequence[int], *, data: bytes = b"data") -> None:
        """More records, over the padding."""
        content = path.read_bytes()
        end = content.rstrip(b"\0")
        path.write_bytes(end + b"".join(txn(zxid, data) for zxid in zxids) + bytes(MIB))

    def snapshot(self, zxid: int, *, until: int | None = None, digest: bool = True, nodes: Sequence[int] = ()) -> Path:
        """Of a tree with nodes that these transactions created. `until`: where it says that it ends."""
        tree = new_tree(with_config=False)
        for number in nodes:
            tree.apply(decode(created(number)[12:-1]))
        acls, rows = rows_of(tree)
        path = self.snapshot_dir / snapshot_name(zxid)
        told = tree.digest if digest else None
        path.write_bytes(b"".join(exact_snapshot({}, acls, rows, zxid=until or zxid, digest=told)))
        return path

    def place(self, name: str = "standalone", host: str = "made:2181") -> MemberPlace:
        return MemberPlace(name, self.root / "data", self.root / ("logs" if self.log_apart else "data"), host)


def rounds(*servers: MadeServer, patience_s: float = 0.0) -> RoundSettings:
    """`servers` by the host of their place; one alone answers to every name."""
    from logkeep.errors import ClusterUnreachable  # noqa: PLC0415

    def ask(host: str) -> ServerState:
        server = servers[0] if len(servers) == 1 else servers[int(host.rpartition(":")[2])]
        server.asked.append(host)
        if server.zxid is None:
            raise ClusterUnreachable("nobody is there", subject=host)
        return ServerState(server.zxid, server.mode, "3.9.5")

    return RoundSettings(INLINE, ask, timeout_s=patience_s, sleep=lambda _: None)


def taken(
    server: MadeServer, sink: BackupSink, *, new_history: bool = False, name: str = "standalone"
) -> ZooKeeperBackupDone:
    return back_up(
        ZooKeeperBackupOptions((server.place(name),), new_history=new_history),
        sink,
        rounds(server),
        lambda _, word: word,
    )


def bundled(
    server: MadeServer, out: Path, backup_id: str | None = "one", *, codec: Codec = Codec.NONE
) -> tuple[BundleView, ZooKeeperBackupDone]:
    with new_bundle(out, backup_id, clock=utc_now, tokens=random_token, codec=codec) as sink:
        done = taken(server, sink)
    return BundleView(sink.path), done


def bundle_names(directory: Path) -> list[str]:
    """The complete bundles in a directory, by their documents."""
    names = [info.parents[1].name for info in directory.glob(f"*/{METADATA}/{INFO}")]
    return sorted(name for name in names if not name.startswith("."))


def content(view: BundleView) -> dict[str, bytes]:
    """All plain bytes of a bundle, by kind and zxid."""
    found = {}
    for snapshot in view.snapshots:
        with view.open(snapshot) as file:
            found[snapshot.name] = file.read()
    for log in view.logs:
        with view.open(log) as file:
            found[log_name(log.first)] = file.read()
    return found


def damaged_in(path: Path, *numbers: int) -> None:
    """Flip a bit in some records of a log whose records are of one size, counted from 0."""
    content, size = bytearray(path.read_bytes()), len(txn(1))
    for number in numbers:
        content[16 + number * size + 42] ^= 1
    path.write_bytes(content)
