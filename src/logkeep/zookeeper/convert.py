"""Convert backups between bundles and repositories: the same plain bytes, each file checked against its checksum.

An export copies one member's files of a backup. An import is a backup whose source is a bundle: it continues the
archived history, and proves that it does, like a backup from a server's directories.
"""

import hashlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from shutil import copyfileobj

import msgspec

from logkeep.errors import ClusterUnreachable, Damaged, UsageError
from logkeep.formats.zookeeper.names import SnapshotPacking, log_name, parse_name
from logkeep.formats.zookeeper.txnlog import HEADER_BYTES
from logkeep.model.findings import Finding
from logkeep.model.segments import Codec
from logkeep.model.work import EngineFor, Progress
from logkeep.repository.object_writer import StoredObject
from logkeep.zookeeper.backup.rounds import RoundSettings
from logkeep.zookeeper.backup.run import ZooKeeperBackupDone, ZooKeeperBackupOptions, back_up
from logkeep.zookeeper.backup.server_files import MemberPlace
from logkeep.zookeeper.bundle import layout
from logkeep.zookeeper.bundle.document import LogEntry, SnapshotEntry, codec_of
from logkeep.zookeeper.bundle.view import BundleView
from logkeep.zookeeper.model.archived import ArchivedLog, ArchivedSnapshot, BackupView, Member
from logkeep.zookeeper.model.config_files import ConfigFile
from logkeep.zookeeper.model.sink import (
    BackupSink,
    Gathered,
    MemberText,
    NewObjects,
    PieceWriter,
    PlacedLog,
    PlacedSnapshot,
)
from logkeep.zookeeper.server.four_letter import ServerState
from logkeep.zookeeper.verify.recorded_losses import ENDS_EARLY, lasting

_CHUNK = 4 << 20
_HISTORY = "1"
"""The only history of a bundle."""


@dataclass(frozen=True)
class ConvertUnit:
    view: BackupView
    pieces: tuple[ArchivedSnapshot | ArchivedLog, ...]
    """One file; or consecutive pieces of one log file, which are joined again."""
    new_objects: NewObjects

    @property
    def size_bytes(self) -> int:
        return sum(piece.size_bytes for piece in self.pieces)


class Converted(msgspec.Struct, frozen=True):
    stored: StoredObject


def convert_file(unit: ConvertUnit, progress: Progress) -> Converted:
    """Copy the pieces of a file. Raises Damaged when a piece does not match its checksum."""
    writer = _open_writer(unit)
    try:
        for number, piece in enumerate(unit.pieces):
            _copy(unit.view, piece, writer, progress, HEADER_BYTES if number else 0)
        return Converted(writer.close())
    finally:
        writer.abort()


def _copy(
    view: BackupView, kept: ArchivedSnapshot | ArchivedLog, writer: PieceWriter, progress: Progress, without: int
) -> None:
    """`without`: how many bytes at the beginning are hashed and not copied."""
    summed = hashlib.sha256()
    with view.open(kept) as source:
        while piece := source.read(_CHUNK):
            summed.update(piece)
            writer.write(memoryview(piece)[without:])
            without = max(without - len(piece), 0)
            progress(len(piece))
    if summed.hexdigest() != kept.sha256:
        raise Damaged("its bytes are not those that were backed up", subject=f"{view.name}: {kept.name}")


def _open_writer(unit: ConvertUnit) -> PieceWriter:
    kept, new_objects = unit.pieces[0], unit.new_objects
    if isinstance(kept, ArchivedLog):
        return new_objects.open_log(kept.member, _HISTORY, kept.first)
    parsed = parse_name(kept.name)
    packed = parsed is not None and parsed.packing is not SnapshotPacking.PLAIN
    doubled = any(s.zxid == kept.zxid and s.name != kept.name for s in unit.view.snapshots)
    return new_objects.open_snapshot(kept.member, _HISTORY, kept.name, kept.zxid, packed=packed or doubled)


@dataclass(frozen=True)
class ExportExtras:
    """What an export includes besides snapshots and logs."""

    findings: Sequence[Finding] = ()
    schemes: Sequence[str] = ()
    texts: Mapping[str, MemberText] = field(default_factory=dict)
    config: Sequence[ConfigFile] = ()
    left_out: Sequence[str] = ()


_NOTHING = ExportExtras()


def export_backup(
    view: BackupView,
    sink: BackupSink,
    engine_for: EngineFor,
    member: str | None = None,
    beside: ExportExtras = _NOTHING,
) -> Gathered:
    """Copy one member's files of a backup, of its newest history, into a sink."""
    chosen = _choose_member(view, member)
    history = _newest_history(view, chosen.name)
    snapshots = [s for s in view.snapshots if (s.member, s.history) == (chosen.name, history)]
    logs = joined_files([log for log in view.logs if (log.member, log.history) == (chosen.name, history)])
    sink.start()
    files: list[tuple[ArchivedSnapshot | ArchivedLog, ...]] = [*((s,) for s in snapshots), *logs]
    units = [ConvertUnit(view, pieces, sink.new_objects) for pieces in files]
    engine = engine_for(sum(unit.size_bytes for unit in units))
    stored = engine.map(convert_file, units, Converted, label="export", weight=lambda unit: unit.size_bytes)
    objects = [c.stored for c in stored]
    renamed = [msgspec.structs.replace(s, history=_HISTORY) for s in snapshots]
    of_snapshots = [PlacedSnapshot(*pair) for pair in zip(renamed, objects, strict=False)]
    of_logs = [_placed(*pair) for pair in zip(logs, objects[len(snapshots) :], strict=True)]
    newest = max((*(s.zxid for s in snapshots), *(p.kept.last for p in of_logs)), default=0)
    gathered = Gathered(
        history=_HISTORY,
        members=[chosen],
        snapshots=of_snapshots,
        logs=of_logs,
        findings=beside.findings,
        schemes=beside.schemes,
        texts=dict(beside.texts),
        config=beside.config,
        left_out=beside.left_out,
        backup_zxid=newest,
    )
    sink.complete(gathered)
    return gathered


def joined_files(logs: Sequence[ArchivedLog]) -> list[tuple[ArchivedLog, ...]]:
    """Consecutive pieces of one file with the same proof: they become one file again. Pure."""
    found: list[tuple[ArchivedLog, ...]] = []
    for log in sorted(logs, key=lambda one: one.first):
        last = found[-1][-1] if found else None
        adjacent = last is not None and (last.name, last.proof) == (log.name, log.proof) and log.first == last.last + 1
        found[-1:] = [(*found[-1], log)] if adjacent else [*found[-1:], (log,)]
    return found


def _placed(pieces: tuple[ArchivedLog, ...], stored: StoredObject) -> PlacedLog:
    whole = msgspec.structs.replace(
        pieces[-1],
        history=_HISTORY,
        first=pieces[0].first,
        records=sum(one.records for one in pieces),
        min_time_ms=min(one.min_time_ms for one in pieces),
        max_time_ms=max(one.max_time_ms for one in pieces),
        borders=pieces[0].borders,
        size_bytes=stored.plain_bytes,
        sha256=stored.plain_sha256,
    )
    return PlacedLog(whole, stored)


def _choose_member(view: BackupView, wanted: str | None) -> Member:
    names = [m.name for m in view.members]
    if wanted is None and len(names) == 1:
        return view.members[0]
    if wanted not in names:
        raise UsageError(
            f"the backup holds {', '.join(names)}" + (f", not {wanted}" if wanted else ": name one with --member"),
            subject=view.name,
        )
    return view.members[names.index(wanted)]


def _newest_history(view: BackupView, member: str) -> str:
    everything: list[ArchivedSnapshot | ArchivedLog] = [*view.snapshots, *view.logs]
    found = {one.history for one in everything if one.member == member}
    return max(found, key=lambda h: (len(h), h), default="1")


def import_bundle(
    view: BundleView,
    sink: BackupSink,
    engine_for: EngineFor,
    *,
    new_history: bool = False,
    member_name: str | None = None,
) -> ZooKeeperBackupDone:
    """Store a bundle as the next backup of a source. Raises HistoryUnproven where it does not continue the archived
    history, Damaged where its document was changed.

    `member_name`: the member's name in the source, if it differs from the bundle's.
    """
    view.require_intact()
    member = view.members[0]
    with _directories(view) as (data_dir, log_dir):
        place = MemberPlace(member_name or member.name, data_dir, log_dir, member.host or "bundle")
        found = lasting(view.info.findings)
        options = ZooKeeperBackupOptions(members=(place,), new_history=new_history, findings=found)
        rounds = RoundSettings(engine_for, _recorded_state(view, member), timeout_s=0.0)
        return back_up(options, sink, rounds, _silent)


def _silent(host: str, word: str) -> str:
    raise ClusterUnreachable(f"a bundle does not answer {word}", subject=host)


def _recorded_state(view: BundleView, member: Member) -> Callable[[str], ServerState]:
    """What the server reported when the bundle was taken, if it answered then."""

    def ask(host: str) -> ServerState:
        if member.zxid is None:
            raise ClusterUnreachable("the server did not answer when the bundle was taken", subject=host)
        reached = max((log.last for log in view.logs), default=member.zxid)
        lacked = any(finding.code == ENDS_EARLY for finding in view.info.findings)  # already then, not by an export
        return ServerState(member.zxid if lacked else min(member.zxid, reached), member.role, member.version)

    return ask


@contextmanager
def _directories(view: BundleView) -> Iterator[tuple[Path, Path]]:
    """The bundle's own directories if no file in them is packed, else plain temporary copies."""
    entries: list[SnapshotEntry | LogEntry] = [*view.info.files.snapshots, *view.info.files.txnlogs]
    if all(codec_of(e) is Codec.NONE for e in entries):
        yield view.path / layout.SNAPSHOTS, view.path / layout.TXNLOGS
        return
    with tempfile.TemporaryDirectory(prefix="logkeep-import-") as made:
        data_dir, log_dir = Path(made) / layout.SNAPSHOTS, Path(made) / layout.TXNLOGS
        data_dir.mkdir()
        log_dir.mkdir()
        for snapshot in view.snapshots:
            _unpack(view, snapshot, data_dir / snapshot.name)
        for log in view.logs:
            _unpack(view, log, log_dir / log_name(log.first))
        yield data_dir, log_dir


def _unpack(view: BundleView, kept: ArchivedSnapshot | ArchivedLog, path: Path) -> None:
    with view.open(kept) as source, path.open("xb") as target:
        copyfileobj(source, target, _CHUNK)
