"""The files of a restored server, as names and bytes that come piece by piece: one snapshot, or the archived files."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from logkeep.errors import Damaged
from logkeep.formats.zookeeper.names import log_name, parse_name, snapshot_name
from logkeep.formats.zookeeper.snapshot_writer import exact_snapshot
from logkeep.formats.zookeeper.txnlog import header, tables
from logkeep.zookeeper.model.archived import ArchivedSnapshot, BackupView
from logkeep.zookeeper.model.tree import Tree, new_tree, rows_of
from logkeep.zookeeper.restore.target_state import EPOCH_FILES
from logkeep.zookeeper.timeline.plan import RestorePath, Slice

_PIECE_BYTES = 1 << 20
_FRAME_BYTES = 12
"""Checksum and length, before the body of a record; one byte follows it."""


@dataclass(frozen=True)
class Made:
    """A file of `version-2`. `in_log_dir`: where a server looks for it."""

    name: str
    pieces: Callable[[], Iterable[bytes]]
    in_log_dir: bool = False


def exact_files(tree: Tree, named: int, epoch: int | None, *, digests: bool) -> list[Made]:
    return [Made(snapshot_name(named), lambda: _snapshot_bytes(tree, named, digests)), *_epoch_files(epoch)]


def original_files(view: BackupView, path: RestorePath, epoch: int | None) -> list[Made]:
    """Where the server began with nothing there is no snapshot, and most versions do not start without one."""
    base = path.base.snapshot
    if base is None:
        empty = new_tree(with_config=path.with_config)
        first = Made(snapshot_name(0), lambda: exact_snapshot({}, *rows_of(empty), zxid=0, digest=None))
    else:
        first = Made(_own_name(base), lambda: _copied(view, base))
    logs = [Made(log_name(piece.first), _cut(view, piece), in_log_dir=True) for piece in path.slices]
    return [first, *logs, *_epoch_files(epoch)]


def _snapshot_bytes(tree: Tree, named: int, digests: bool) -> Iterator[bytes]:
    """A digest is always told for the zxid in the name: a server compares it when it has loaded the file."""
    acls, rows = rows_of(tree)
    return exact_snapshot(tree.sessions, acls, rows, zxid=named, digest=tree.digest if digests else None)


def _epoch_files(epoch: int | None) -> list[Made]:
    return [] if epoch is None else [Made(name, lambda: [str(epoch).encode()]) for name in EPOCH_FILES]


def _own_name(snapshot: ArchivedSnapshot) -> str:
    """Never a path: what a backup names is made anew from what the name means."""
    parsed = parse_name(snapshot.name)
    if parsed is None or parsed.stray or parsed.zxid != snapshot.zxid:
        raise Damaged("not the name of a snapshot", subject=snapshot.name)
    return snapshot_name(parsed.zxid) + (f".{parsed.packing}" if parsed.packing else "")


def _copied(view: BackupView, snapshot: ArchivedSnapshot) -> Iterator[bytes]:
    with view.open(snapshot) as source:
        while piece := source.read(_PIECE_BYTES):
            yield piece


def _cut(view: BackupView, piece: Slice) -> Callable[[], Iterator[bytes]]:
    return lambda: _records(view, piece)


def _records(view: BackupView, piece: Slice) -> Iterator[bytes]:
    """The header, and the records of the slice as they are."""
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
