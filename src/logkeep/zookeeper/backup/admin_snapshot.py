"""Backup of one snapshot from the AdminServer of ZooKeeper 3.9 over HTTP, without access to the server's disk.

Such a snapshot is fuzzy while clients write, and there are no logs to make it exact. It counts as exact only if the
digest that the server wrote into it matches its nodes, and every ACL list and every session that they refer to is in
it, which no digest covers: then it is the tree at that transaction and is named after it. Otherwise it is stored as it
is, with a finding.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, cast

from logkeep.errors import ClusterUnreachable, HistoryUnproven
from logkeep.formats.kafka.batches import XERIAL_MAGIC
from logkeep.formats.zookeeper.compression import opened
from logkeep.formats.zookeeper.names import SnapshotPacking, hex_zxid, snapshot_name
from logkeep.formats.zookeeper.snapshot import SnapshotReader
from logkeep.model.findings import Finding, Severity
from logkeep.model.work import EngineFor
from logkeep.zookeeper.backup.rounds import RoundSettings
from logkeep.zookeeper.backup.run import ZooKeeperBackupDone, ZooKeeperBackupOptions, back_up
from logkeep.zookeeper.backup.server_files import MemberPlace
from logkeep.zookeeper.model.archived import FileOrigin
from logkeep.zookeeper.model.paths import SYSTEM
from logkeep.zookeeper.model.sink import BackupSink, Known
from logkeep.zookeeper.model.tree import tree_of, unresolved
from logkeep.zookeeper.server.admin_download import LimitedPlain
from logkeep.zookeeper.server.admin_http import AdminServer, download, sent_in_clear, server_facts
from logkeep.zookeeper.server.four_letter import ServerState
from logkeep.zookeeper.timeline.same_ensemble import same_past

_PAUSE_S: Final = 1.0
_ATTEMPTS: Final = 5
_PACKED: Final = ((b"\x1f\x8b", SnapshotPacking.GZIP), (XERIAL_MAGIC, SnapshotPacking.SNAPPY))
_FROM_DISK: Final = "back up from the server's directories"


@dataclass(frozen=True)
class FetchedSnapshot:
    """A snapshot in a temporary directory, under the name in the archive."""

    path: Path
    exact: bool
    zxid: int
    """The server's zxid when it began to write the nodes."""
    findings: tuple[Finding, ...]
    hopeless: bool = False
    """The server writes no digests: another attempt would not be exact either."""


def back_up_by_admin(
    server: AdminServer,
    member: str,
    sink: BackupSink,
    engine_for: EngineFor,
    sleep: Callable[[float], None],
    *,
    new_history: bool = False,
) -> ZooKeeperBackupDone:
    """A backup that consists of one snapshot. Exit code 2 if it is fuzzy, which the finding explains.

    Raises HistoryUnproven if it does not continue what is archived, unless a new history is requested.
    """
    with fetched_snapshot(server, sleep) as found:
        if not new_history:
            _check_history(found, sink.known, member)
        mode, version = server_facts(server)
        place = MemberPlace(member, found.path.parent, found.path.parent, server.url, FileOrigin.ADMIN)
        rounds = RoundSettings(engine_for, lambda _: ServerState(found.zxid, mode, version), timeout_s=0.0)
        findings = (*found.findings, *sent_in_clear(server))
        options = ZooKeeperBackupOptions((place,), new_history=new_history, findings=findings)
        return back_up(options, sink, rounds, _no_words)


def _check_history(found: FetchedSnapshot, known: Known, member: str) -> None:
    """Compares the tree at the archive's end if there is no archived record to compare. Raises HistoryUnproven.

    An archive that ends with a fuzzy snapshot, or without nodes outside /zookeeper, proves nothing.
    """
    tree = known.tree() if known.anything and not known.marks else None
    if tree is None or not any(path and not path.startswith(SYSTEM) for path in tree.nodes):
        return
    with found.path.open("rb") as file, opened(file, _packing(found.path)) as plain:
        reader = SnapshotReader(plain)
        reader.sessions()
        reader.acls()
        same = found.zxid >= tree.zxid and same_past(tree, reader.nodes(), tree.zxid, found.zxid)
    if not same:
        what = f"its nodes are not those that the archive ends with ({hex_zxid(tree.zxid)})"
        raise HistoryUnproven(what, subject=f"member {member}")


def _no_words(host: str, word: str) -> str:
    raise ClusterUnreachable(f"an AdminServer does not answer {word}", subject=host)


@contextmanager
def fetched_snapshot(
    server: AdminServer, sleep: Callable[[float], None], *, scratch: Path | None = None
) -> Iterator[FetchedSnapshot]:
    """Download until a snapshot is exact, at most five times; the last one is returned if none was."""
    with tempfile.TemporaryDirectory(dir=scratch, prefix="logkeep-admin-") as made:
        for attempt in range(1, _ATTEMPTS + 1):
            found = _fetch(server, Path(made), sleep)
            if found.exact or found.hopeless or attempt == _ATTEMPTS:
                yield found
                return
            found.path.unlink()
            sleep(_PAUSE_S)


def _fetch(server: AdminServer, directory: Path, sleep: Callable[[float], None]) -> FetchedSnapshot:
    path = directory / "fetched"
    began = download(server, path, sleep)
    packing = _packing(path)
    digest, zxid = _digests(path, packing, server)
    exact = digest.proves
    at = zxid if exact else digest.needed_from(began)
    named = path.rename(directory / (snapshot_name(at) + (f".{packing}" if packing else "")))
    findings = () if exact else (_inexact(server.url, digest, began, zxid),)
    return FetchedSnapshot(named, exact, zxid if exact else began, findings, digest.written is None)


@dataclass(frozen=True)
class _Digest:
    computed: int
    written: int | None
    without_acls: int
    """Nodes whose ACL list was created while the snapshot was written, and is not in it."""
    orphans: tuple[int, ...]
    """The transactions that created ephemeral nodes whose sessions are not in it. The server writes sessions and nodes
    at different moments, so a session that began in between is missing, and no digest shows it."""

    @property
    def proves(self) -> bool:
        return self.computed == self.written and not self.without_acls and not self.orphans

    def needed_from(self, began: int) -> int:
        """The transaction after which a log must begin to make it exact: before a missing session was used."""
        return began if self.written is None else min([began, *(created - 1 for created in self.orphans)])


def _inexact(url: str, digest: _Digest, began: int, zxid: int) -> Finding:
    if digest.written is None:
        what = "it is unproven: the server writes no digests, so it is unknown whether clients wrote meanwhile"
        remedy = f"start the server with zookeeper.digest.enabled=true, or {_FROM_DISK}"
        return Finding(code="snapshot-unproven", severity=Severity.WARNING, where=url, what=what, remedy=remedy)
    lacks = _lacking("ACLs", "a node", digest.without_acls)
    lacks += _lacking("sessions", "an ephemeral node", len(digest.orphans))
    needed = f"it needs the log from {hex_zxid(digest.needed_from(began))} to {hex_zxid(zxid)}"
    what = f"it is fuzzy: clients wrote while it was taken{lacks}, and {needed}"
    remedy = f"take it in a quiet moment, or {_FROM_DISK}: that makes this one exact too, if its logs go back so far"
    return Finding(code="snapshot-fuzzy", severity=Severity.WARNING, where=url, what=what, remedy=remedy)


def _lacking(what: str, one: str, number: int) -> str:
    """`one`: the kind of node with its article."""
    of = one if number == 1 else f"{number} {one.split(maxsplit=1)[1]}s"
    return f", the {what} of {of} are not in it" if number else ""


def _packing(path: Path) -> SnapshotPacking:
    """A server compresses what it sends like its files."""
    with path.open("rb") as file:
        first = file.read(len(XERIAL_MAGIC))
    return next((packing for magic, packing in _PACKED if first.startswith(magic)), SnapshotPacking.PLAIN)


def _digests(path: Path, packing: SnapshotPacking, server: AdminServer) -> tuple[_Digest, int]:
    """The digest of the nodes, the one that the server wrote, and its transaction. Raises Damaged, ClusterError."""
    with path.open("rb") as file, opened(file, packing) as plain:
        reader = SnapshotReader(cast("BinaryIO", LimitedPlain(plain, server.limits, server.url)))
        sessions, acls = reader.sessions(), reader.acls()
        tree = tree_of(sessions, acls, reader.nodes())
        ending = reader.ending()
    missed = [paths for owner, paths in tree.ephemerals.items() if owner not in sessions]
    orphans = tuple(tree.nodes[path].czxid for paths in missed for path in paths)
    return _Digest(tree.digest, ending.digest, len(unresolved(tree)), orphans), ending.digest_zxid
