"""Verification level `boot`: a real server replays the files, and its whole tree is compared with the replayed one.

The server works on a copy: the snapshot of the path, and its logs cut after the last transaction. The caller passes in
how to start one. Sessions in the copy expire while the server runs, so their ephemeral nodes may be gone and the
parents changed; nothing else may differ. Only a server that exits on the copy is a finding about the backup: missing
programs on this machine, or a client without an answer, are errors.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from shutil import copyfileobj
from typing import Final, Protocol

from logkeep.errors import Damaged, LogkeepError, ServerFailed, ServerRefused
from logkeep.formats.zookeeper import shown
from logkeep.formats.zookeeper.names import log_name, snapshot_name
from logkeep.formats.zookeeper.snapshot_writer import exact_snapshot
from logkeep.formats.zookeeper.txnlog import header
from logkeep.model.findings import Severity
from logkeep.model.plurals import plural
from logkeep.zookeeper.model.archived import ArchivedSnapshot, BackupView
from logkeep.zookeeper.model.findings import Class, FileFinding
from logkeep.zookeeper.model.log_slices import give_records
from logkeep.zookeeper.model.tree import Node, Tree, is_ephemeral, new_tree, rows_of
from logkeep.zookeeper.model.tree_compare import data_is_unlogged, stat_is_unlogged
from logkeep.zookeeper.server.client import LiveNode
from logkeep.zookeeper.timeline.holdings import Holdings
from logkeep.zookeeper.timeline.plan import RestorePath, RestoreRefused, Slice, ToEnd, TransactionTimes
from logkeep.zookeeper.timeline.proof import proven_path

_MOST_REPORTED: Final = 20
_CHUNK: Final = 1 << 20
_MOST_LINES: Final = 5
_MOST_IN_LINE: Final = 300


class BootedServer(Protocol):
    """A server that answers clients."""

    def nodes(self) -> Iterator[LiveNode]:
        """All of its tree."""


Boot = Callable[[Path], AbstractContextManager[BootedServer]]
"""Starts a server on a data directory (which holds version-2) and stops it at the end of the block.

Raises ServerRefused if the server exits because of the files, other errors for everything else.
"""


def boot_findings(
    view: BackupView, holdings: Holdings, moments: TransactionTimes, boot: Boot, scratch: Path
) -> Iterator[FileFinding]:
    """For the end of the newest history. If it cannot be restored, earlier steps have reported that.

    Raises ServerFailed, ClusterError or EngineUnavailable if no server could be started or asked.
    """
    try:
        end = proven_path(view, holdings, ToEnd(), moments)
    except Damaged:
        return
    if isinstance(end, RestoreRefused):
        return
    stage(view, end.path, scratch)
    try:
        with boot(scratch) as server:
            found = list(tree_differences(end.replayed.tree, {node.path: node for node in server.nodes()}))
    except ServerRefused as error:
        yield _damage(Class.BOOT_FAILED, refused_words(error), "do not restore from it before this is understood")
        return
    for difference in found[:_MOST_REPORTED]:
        yield _damage(Class.BOOT_DIFFERS, difference, "do not restore from it before this is understood")
    if len(found) > _MOST_REPORTED:
        more = plural(len(found) - _MOST_REPORTED, "node more differs", "nodes more differ")
        yield _damage(Class.BOOT_DIFFERS, f"and {more}", "")


def refused_words(error: ServerRefused) -> str:
    """With the end of its log: the file itself is deleted with the copy."""
    return f"a real server does not start on it: {error}; the end of its log: {log_end(error)}"


def not_booted(error: LogkeepError | OSError) -> FileFinding:
    """The requested level was not completed; reported together with damage that was found without a server."""
    what = error.what if isinstance(error, LogkeepError) else (error.strerror or str(error)).lower()
    remedy = error.remedy if isinstance(error, LogkeepError) else ""
    return FileFinding(
        kind=Class.NOT_BOOTED,
        severity=Severity.WARNING,
        where="boot",
        what=f"no server could check it: {what}",
        remedy=remedy,
    )


def log_end(error: ServerFailed) -> str:
    """The last lines of the log of a server that failed, joined; the error carries them as notes."""
    lines = [line for note in getattr(error, "__notes__", ()) for line in note.splitlines()][-_MOST_LINES:]
    cut = (line[:_MOST_IN_LINE] for line in lines)
    text = " | ".join("".join(c if c.isprintable() else " " for c in line).strip() for line in cut)
    return text or "none"


def _damage(kind: Class, what: str, remedy: str) -> FileFinding:
    return FileFinding(kind=kind, severity=Severity.DAMAGE, where="boot", what=what, remedy=remedy)


def stage(view: BackupView, path: RestorePath, data_dir: Path) -> None:
    """Write the files of a path as a server would have them, into a directory without such files."""
    version_2 = data_dir / "version-2"
    version_2.mkdir(parents=True, mode=0o700)
    if path.base.snapshot is not None:
        _copy(view, path.base.snapshot, version_2 / path.base.snapshot.name)
    else:
        _begin_empty(path, version_2)
    for piece in path.slices:
        _copy_slice(view, piece, version_2 / log_name(piece.first))


def _begin_empty(path: RestorePath, version_2: Path) -> None:
    """Since 3.5 no server starts on logs alone: it gets the snapshot of an empty server."""
    acls, rows = rows_of(new_tree(with_config=path.with_config))
    with (version_2 / snapshot_name(0)).open("xb") as out:
        out.writelines(exact_snapshot({}, acls, rows, zxid=0, digest=None))


def _copy(view: BackupView, snapshot: ArchivedSnapshot, target: Path) -> None:
    with view.open(snapshot) as source, target.open("xb") as out:
        copyfileobj(source, out, _CHUNK)


def _copy_slice(view: BackupView, piece: Slice, target: Path) -> None:
    with target.open("xb") as out:
        out.write(header())
        give_records(view, piece.log, piece.first, piece.last, out.write)


def tree_differences(tree: Tree, live: Mapping[bytes, LiveNode]) -> Iterator[str]:
    """One text per node. Differences that the end of a session explains are left out."""
    children = Counter(path[: path.rindex(b"/")] for path in tree.nodes if path)
    for path, node in tree.nodes.items():
        seen = live.get(path)
        if seen is None:
            if not is_ephemeral(node.owner):
                yield f"{shown(path)} is not in the server's tree"
        elif fields := _different(path, node, seen, children[path], tree.zxid):
            yield f"{shown(path)} differs in {', '.join(fields)}"
    for path in live.keys() - tree.nodes.keys():
        yield f"{shown(path)} is in the server's tree only"


def _different(path: bytes, node: Node, seen: LiveNode, children: int, until: int) -> list[str]:
    left_since = seen.pzxid > until  # a session ended since, and its nodes were deleted
    values = {
        "data": (node.data, seen.data),
        "ACL": (node.acls, seen.acls),
        "czxid": (node.czxid, seen.czxid),
        "mzxid": (node.mzxid, seen.mzxid),
        "ctime": (node.ctime, seen.ctime),
        "mtime": (node.mtime, seen.mtime),
        "version": (node.version, seen.version),
        "aversion": (node.aversion, seen.aversion),
        "cversion": (2 * node.cversion, seen.cversion + seen.children),
        "owner": (node.owner if is_ephemeral(node.owner) else 0, seen.owner),
        "children": (children, children if left_since and seen.children < children else seen.children),
        "pzxid": (node.pzxid, node.pzxid if left_since else seen.pzxid),
    }
    ignored = {"data"} if data_is_unlogged(path) else set()
    ignored |= {"version", "mzxid", "mtime"} if stat_is_unlogged(path) else set()
    return [name for name, (ours, theirs) in values.items() if ours != theirs and name not in ignored]
