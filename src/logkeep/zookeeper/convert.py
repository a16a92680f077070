"""Bundle ↔ repository: the same plain bytes in another place, each compared with its checksum on the way.

An export copies what one member has in a backup. An import is a backup whose source is a bundle: so it continues what
is archived, and proves that it does, exactly as one from a server's directories.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from logkeep.errors import ClusterUnreachable, Damaged, UsageError
from logkeep.formats.zookeeper.names import Packing, log_name, parse_name
from logkeep.model.segments import Codec
from logkeep.model.work import EngineFor, Progress
from logkeep.zookeeper.backup import Done, Wish, back_up
from logkeep.zookeeper.bundle import layout
from logkeep.zookeeper.bundle.documents import codec_of
from logkeep.zookeeper.bundle.view import BundleView
from logkeep.zookeeper.collect import MemberPlace
from logkeep.zookeeper.gathering import Rounds
from logkeep.zookeeper.kept import BackupView, KeptLog, KeptSnapshot, Member
from logkeep.zookeeper.sink import BackupSink, Gathered, PieceWriter, PlacedLog, PlacedSnapshot, Shelf, Stored
from logkeep.zookeeper.words import ServerState

_CHUNK = 4 << 20


@dataclass(frozen=True)
class ConvertUnit:
    view: BackupView
    kept: KeptSnapshot | KeptLog
    history: str
    shelf: Shelf


class Converted(msgspec.Struct, frozen=True):
    stored: Stored


def convert_piece(unit: ConvertUnit, progress: Progress) -> Converted:
    """One object, as it is. Raises Damaged when it is not what its backup says."""
    writer = _opened(unit)
    try:
        with unit.view.open(unit.kept) as source:
            while piece := source.read(_CHUNK):
                writer.write(piece)
                progress(len(piece))
        stored = writer.close()
        if stored.plain_sha256 != unit.kept.sha256:
            raise Damaged("its bytes are not those that were backed up", subject=f"{unit.view.name}: {unit.kept.name}")
        return Converted(stored)
    finally:
        writer.abort()


def _opened(unit: ConvertUnit) -> PieceWriter:
    kept, shelf = unit.kept, unit.shelf
    if isinstance(kept, KeptLog):
        return shelf.open_log(kept.member, unit.history, kept.first)
    parsed = parse_name(kept.name)
    packed = parsed is not None and parsed.packing is not Packing.PLAIN
    return shelf.open_snapshot(kept.member, unit.history, kept.name, kept.zxid, packed=packed or _doubled(unit, kept))


def _doubled(unit: ConvertUnit, kept: KeptSnapshot) -> bool:
    return any(s.zxid == kept.zxid and s.name != kept.name for s in unit.view.snapshots)


def export_backup(view: BackupView, sink: BackupSink, engine_for: EngineFor, member: str | None = None) -> Gathered:
    """One member's files of a backup into a sink, the newest history of them."""
    chosen = _chosen(view, member)
    history = _newest_history(view, chosen.name)
    kept: list[KeptSnapshot | KeptLog] = [
        one for one in (*view.snapshots, *view.logs) if (one.member, one.history) == (chosen.name, history)
    ]
    sink.start()
    units = [ConvertUnit(view, one, "1", sink.shelf) for one in kept]
    engine = engine_for(sum(one.size_bytes for one in kept))
    stored = engine.map(convert_piece, units, Converted, label="export", weight=lambda u: u.kept.size_bytes)
    gathered = _gathered(chosen, [(replace(one, history="1"), c.stored) for one, c in zip(kept, stored, strict=True)])
    sink.complete(gathered)
    return gathered


def _chosen(view: BackupView, wanted: str | None) -> Member:
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
    found = {one.history for one in (*view.snapshots, *view.logs) if one.member == member}
    return max(found, key=lambda h: (len(h), h), default="1")


def _gathered(member: Member, placed: list[tuple[KeptSnapshot | KeptLog, Stored]]) -> Gathered:
    snapshots = [PlacedSnapshot(kept, stored) for kept, stored in placed if isinstance(kept, KeptSnapshot)]
    logs = [PlacedLog(kept, stored) for kept, stored in placed if isinstance(kept, KeptLog)]
    newest = max((*(s.kept.zxid for s in snapshots), *(p.kept.last for p in logs)), default=0)
    return Gathered(history="1", members=[member], snapshots=snapshots, logs=logs, backup_zxid=newest)


def import_bundle(
    view: BundleView,
    sink: BackupSink,
    engine_for: EngineFor,
    *,
    new_history: bool = False,
    scratch: Path | None = None,
) -> Done:
    """A bundle as the next backup of a source. Raises HistoryUnproven where it does not continue what is there."""
    member = view.members[0]
    with _directories(view, scratch) as (data_dir, log_dir):
        place = MemberPlace(member.name, data_dir, log_dir, member.host or "bundle")
        wish = Wish(members=(place,), new_history=new_history)
        rounds = Rounds(engine_for, _as_told(view, member), patience_s=0.0)
        return back_up(wish, sink, rounds, _silent)


def _silent(host: str, word: str) -> str:
    raise ClusterUnreachable(f"a bundle does not answer {word}", subject=host)


def _as_told(view: BundleView, member: Member) -> Callable[[str], ServerState]:
    """What the server said when the bundle was taken, if it could be asked then."""

    def ask(host: str) -> ServerState:
        if member.zxid is None:
            raise ClusterUnreachable("the server could not be asked when the bundle was taken", subject=host)
        reached = max((log.last for log in view.logs), default=member.zxid)
        return ServerState(min(member.zxid, reached), member.role, member.version)

    return ask


@contextmanager
def _directories(view: BundleView, scratch: Path | None) -> Iterator[tuple[Path, Path]]:
    """The bundle's own directories when nothing in them is packed, else plain copies that are removed again."""
    entries = (*view.info.files.snapshots, *view.info.files.txnlogs)
    if all(codec_of(e) is Codec.NONE for e in entries):
        yield view.path / layout.SNAPSHOTS, view.path / layout.TXNLOGS
        return
    with tempfile.TemporaryDirectory(dir=scratch, prefix="logkeep-import-") as made:
        data_dir, log_dir = Path(made) / layout.SNAPSHOTS, Path(made) / layout.TXNLOGS
        data_dir.mkdir()
        log_dir.mkdir()
        for snapshot in view.snapshots:
            _unpack(view, snapshot, data_dir / snapshot.name)
        for log in view.logs:
            _unpack(view, log, log_dir / log_name(log.first))
        yield data_dir, log_dir


def _unpack(view: BundleView, kept: KeptSnapshot | KeptLog, path: Path) -> None:
    with view.open(kept) as source, path.open("xb") as target:
        while piece := source.read(_CHUNK):
            target.write(piece)
