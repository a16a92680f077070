"""The files of a restored server, as names and pieces of bytes: one exact snapshot, or the archived files."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from logkeep.errors import Damaged
from logkeep.formats.zookeeper.names import log_name, parse_name, snapshot_name
from logkeep.formats.zookeeper.snapshot_writer import exact_snapshot
from logkeep.formats.zookeeper.txnlog import header, tables
from logkeep.zookeeper.model.archived import ArchivedSnapshot, BackupView
from logkeep.zookeeper.model.tree import Tree, new_tree, rows_of
from logkeep.zookeeper.restore.target.state import EPOCH_FILES
from logkeep.zookeeper.timeline.plan import RestorePath, Slice

_PIECE_BYTES = 1 << 20
_FRAME_BYTES = 12
"""Checksum and length, before the body of a record; one byte follows it."""
_MASK = 0xFFFF_FFFF_FFFF_FFFF


@dataclass(frozen=True)
class DroppedSessions:
    sessions: int = 0
    ephemerals: int = 0


def drop_sessions(tree: Tree) -> DroppedSessions:
    """Remove the sessions and their ephemeral nodes from the tree, and nothing else: no transaction removed them."""
    paths = [path for of_session in tree.ephemerals.values() for path in of_session]
    for path in paths:
        tree.digest = (tree.digest - tree.nodes.pop(path).digest) & _MASK
    dropped = DroppedSessions(len(tree.sessions), len(paths))
    tree.ephemerals.clear()
    tree.sessions.clear()
    return dropped


@dataclass(frozen=True)
class StagedFile:
    """A file of `version-2`. `in_log_dir`: it belongs to `dataLogDir`."""

    name: str
    pieces: Callable[[], Iterable[bytes]]
    in_log_dir: bool = False


def exact_files(tree: Tree, named: int, epoch: int | None, *, digests: bool) -> list[StagedFile]:
    return [StagedFile(snapshot_name(named), lambda: _snapshot_bytes(tree, named, digests)), *_epoch_files(epoch)]


def original_files(view: BackupView, path: RestorePath, epoch: int | None) -> list[StagedFile]:
    """With an empty first snapshot where the backup has none: most versions do not start without a snapshot."""
    base = path.base.snapshot
    if base is None:
        empty = new_tree(with_config=path.with_config)
        first = StagedFile(snapshot_name(0), lambda: exact_snapshot({}, *rows_of(empty), zxid=0, digest=None))
    else:
        first = StagedFile(_checked_name(base), lambda: _copy(view, base))
    logs = [StagedFile(log_name(piece.first), partial(_records, view, piece), in_log_dir=True) for piece in path.slices]
    return [first, *logs, *_epoch_files(epoch)]


def _snapshot_bytes(tree: Tree, named: int, digests: bool) -> Iterator[bytes]:
    """The digest is the one of the zxid in the name: a server compares it when it has loaded the file."""
    acls, rows = rows_of(tree)
    return exact_snapshot(tree.sessions, acls, rows, zxid=named, digest=tree.digest if digests else None)


def _epoch_files(epoch: int | None) -> list[StagedFile]:
    return [] if epoch is None else [StagedFile(name, lambda: [str(epoch).encode()]) for name in EPOCH_FILES]


def _checked_name(snapshot: ArchivedSnapshot) -> str:
    """Made again from the parts of the archived name, so that it is never a path."""
    parsed = parse_name(snapshot.name)
    if parsed is None or parsed.stray or parsed.zxid != snapshot.zxid:
        raise Damaged("this is not the name of a snapshot", subject=snapshot.name)
    return snapshot_name(parsed.zxid) + (f".{parsed.packing}" if parsed.packing else "")


def _copy(view: BackupView, snapshot: ArchivedSnapshot) -> Iterator[bytes]:
    with view.open(snapshot) as source:
        while piece := source.read(_PIECE_BYTES):
            yield piece


def _records(view: BackupView, piece: Slice) -> Iterator[bytes]:
    """The header, and the archived bytes of the slice's records."""
    yield header()
    with view.open(piece.log) as source:
        for records in tables(source):
            inside = (records.zxid >= piece.first) & (records.zxid <= piece.last)
            at = inside.nonzero()[0]
            if len(at):
                start = int(records.body_at[at[0]]) - _FRAME_BYTES
                end = int(records.body_at[at[-1]] + records.body_bytes[at[-1]]) + 1
                yield bytes(records.data[start:end])
            if int(records.zxid[-1]) >= piece.last:
                return
