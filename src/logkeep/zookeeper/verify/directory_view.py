"""The directories of a server as a backup view, to verify them in place or to use them as donors of a repair.

Every log and every snapshot is read once. A log that is damaged in the middle becomes several, one per stretch of good
records; the damage is in `seen`. Nothing is written, and the server may continue to write meanwhile.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

import msgspec

from logkeep.errors import Damaged, UsageError
from logkeep.formats.zookeeper.names import FileKind, FileName, epoch_of, follows, parse_name
from logkeep.formats.zookeeper.txnlog import HEADER_BYTES, DamageKind, RecordStretch, ScannedLog, header, scan, tables
from logkeep.model.findings import Severity
from logkeep.model.segments import Proof
from logkeep.zookeeper.model.archived import (
    ArchivedFile,
    ArchivedLog,
    ArchivedSnapshot,
    LogFileEnding,
    Member,
    digest_hex,
)
from logkeep.zookeeper.model.findings import Class, FileFinding
from logkeep.zookeeper.model.log_slices import LogPart
from logkeep.zookeeper.model.snapshot_scan import Hashed, read_facts
from logkeep.zookeeper.timeline.log_check import log_findings
from logkeep.zookeeper.timeline.survey import borders_in

_VERSION_2 = "version-2"
_HISTORY = "1"


@dataclass(frozen=True)
class FileBytes:
    """Bytes `[start, end)` of a file; of a log without its header."""

    path: Path
    start: int
    end: int


@dataclass(frozen=True)
class DirectoryView:
    name: str
    members: Sequence[Member]
    snapshots: Sequence[ArchivedSnapshot]
    logs: Sequence[ArchivedLog]
    seen: tuple[FileFinding, ...]
    """Findings about the files themselves."""
    places: dict[ArchivedFile, FileBytes]

    def open(self, kept: ArchivedFile) -> BinaryIO:
        place = self.places[kept]
        return _opened(place, header()) if isinstance(kept, ArchivedLog) else _opened(place, b"")

    def salvage(self, kept: ArchivedLog) -> BinaryIO:
        return self.open(kept)

    def unsealed(self, _kept: ArchivedFile) -> bool:
        return False


def _opened(place: FileBytes, before: bytes) -> BinaryIO:
    return LogPart(place.path.open("rb", buffering=0), place.start, place.end, before).buffered()


def directory_view(member: Member, *, cold: bool = False) -> DirectoryView:
    """`member.data_dir` and `log_dir` are its directories, or their version-2; the log directory may be empty.

    `cold`: no server runs on them, so the last record bounds every snapshot.
    """
    reader = _DirectoryReader(member, cold)
    reader.take_logs(_files(member.log_dir or member.data_dir, FileKind.LOG, reader.seen))
    reader.take_snapshots(_files(member.data_dir, FileKind.SNAPSHOT, reader.seen))
    return DirectoryView(
        member.name, (member,), tuple(reader.snapshots), tuple(reader.logs), tuple(reader.seen), reader.places
    )


def _files(directory: str, kind: FileKind, seen: list[FileFinding]) -> list[tuple[Path, FileName]]:
    """Files of a kind by zxid. Names that a server would read, but never writes, are findings."""
    base = Path(directory)
    base = base if base.name == _VERSION_2 else base / _VERSION_2
    if not base.is_dir():
        raise UsageError(f"there is no directory {_VERSION_2}", subject=directory)
    found = []
    for path in base.iterdir():
        parsed = parse_name(path.name)
        if parsed is None or parsed.kind is not kind or not path.is_file():
            continue
        if parsed.stray:
            seen.append(_stray(path.name))
        else:
            found.append((path, parsed))
    return sorted(found, key=lambda each: (each[1].zxid, each[0].name))


def _stray(name: str) -> FileFinding:
    return FileFinding(
        kind=Class.STRAY_FILE,
        severity=Severity.WARNING,
        where=name,
        what="no server writes such a name, and every server reads it",
        remedy="move it out of version-2; it is not read here",
    )


class _DirectoryReader:
    def __init__(self, member: Member, cold: bool) -> None:
        self._member, self._cold = member, cold
        self.snapshots: list[ArchivedSnapshot] = []
        self.logs: list[ArchivedLog] = []
        self.seen: list[FileFinding] = []
        self.places: dict[ArchivedFile, FileBytes] = {}

    def take_logs(self, files: Sequence[tuple[Path, FileName]]) -> None:
        scans = [(path, *_scanned(path)) for path, _ in files]
        for number, (path, scanned, sha256) in enumerate(scans):
            later = next((other.first_zxid for _, other, _ in scans[number + 1 :] if other.records), None)
            newest = number == len(scans) - 1
            before = max((other.last_zxid for _, other, _ in scans[:number] if other.records), default=None)
            self.seen += log_findings(path.name, scanned, newest=newest, before=before, next_first=later)
            self._take_log(path, scanned, sha256, newest)
        self._join(dict.fromkeys(path.name for path, scanned, _ in scans if not scanned.damage))

    def _take_log(self, path: Path, scanned: ScannedLog, sha256: str, newest: bool) -> None:
        torn = any(damage.kind is DamageKind.TORN for damage in scanned.damage)
        ending = LogFileEnding.CLEAN if not scanned.damage else LogFileEnding.DAMAGED
        if torn and len(scanned.damage) == 1:
            ending = LogFileEnding.ACTIVE_TAIL if newest else LogFileEnding.TORN
        if scanned.records:
            first = RecordStretch(
                HEADER_BYTES, scanned.size_bytes, scanned.records, scanned.first_zxid, scanned.last_zxid,
                scanned.min_time_ms, scanned.max_time_ms, scanned.last_adler,
            )  # fmt: skip
            self._keep(path, first, sha256, ending, scanned.with_digests)
        for stretch in scanned.behind:
            if stretch.records:
                self._keep(path, stretch, _sha256(path, stretch), ending, scanned.with_digests)

    def _keep(self, path: Path, stretch: RecordStretch, sha256: str, ending: LogFileEnding, digests: bool) -> None:
        log = ArchivedLog(
            member=self._member.name,
            history=_HISTORY,
            name=path.name,
            first=stretch.first_zxid,
            last=stretch.last_zxid,
            records=stretch.records,
            min_time_ms=stretch.min_time_ms,
            max_time_ms=stretch.max_time_ms,
            last_adler=stretch.last_adler,
            ending=ending,
            proof=self._proof(stretch),
            size_bytes=HEADER_BYTES + stretch.end - stretch.start,
            sha256=sha256,
            digests=digests,
        )
        place = FileBytes(path, stretch.start, stretch.end)
        if epoch_of(log.first) != epoch_of(log.last):
            with _opened(place, header()) as source:
                log = msgspec.structs.replace(log, borders=borders_in(records.zxid for records in tables(source)))
        self.logs.append(log)
        self.places[log] = place

    def _proof(self, stretch: RecordStretch) -> Proof:
        """The server's zxid proves its own epoch only: the next leader may have discarded the last transactions of an
        earlier one. A standalone server commits all that it logs."""
        if self._member.zxid is None:
            return Proof.UNPROVEN
        epochs = {epoch_of(stretch.first_zxid), epoch_of(stretch.last_zxid)}
        proven = self._member.role == "standalone" or epochs == {epoch_of(self._member.zxid)}
        return Proof.PROVEN if proven else Proof.UNPROVEN

    def _join(self, whole: dict[str, None]) -> None:
        """Add ends of epochs from one file to the next, if the first is undamaged and closed."""
        for number, (log, later) in enumerate(pairwise(list(self.logs))):
            if log.name not in whole or epoch_of(log.last) == epoch_of(later.first):
                continue
            if follows(log.last, later.first):
                joined = msgspec.structs.replace(later, borders=((log.last, later.first), *later.borders))
                self.places[joined] = self.places.pop(later)
                self.logs[number + 1] = joined

    def take_snapshots(self, files: Sequence[tuple[Path, FileName]]) -> None:
        for path, parsed in files:
            try:
                self._take_snapshot(path, parsed)
            except Damaged as error:
                self.seen.append(
                    FileFinding(
                        kind=Class.SNAPSHOT_DAMAGED,
                        severity=Severity.WARNING,
                        where=path.name,
                        what=str(error),
                        remedy="it is not used; an older one with the logs after it gives the same",
                        zxid=parsed.zxid,
                    )
                )

    def _take_snapshot(self, path: Path, parsed: FileName) -> None:
        with path.open("rb") as file:
            facts = read_facts(Hashed(file), path.name)
        snapshot = ArchivedSnapshot(
            member=self._member.name,
            history=_HISTORY,
            name=path.name,
            zxid=parsed.zxid,
            fuzzy_end=facts.fuzzy_end,
            bound=self._bound(),
            digest_hex=digest_hex(facts.digest),
            digest_zxid=facts.digest_zxid,
            nodes=facts.nodes,
            size_bytes=facts.size_bytes,
            sha256=facts.sha256,
        )
        self.snapshots.append(snapshot)
        self.places[snapshot] = FileBytes(path, 0, facts.size_bytes)

    def _bound(self) -> int | None:
        """A standalone server logs a transaction before it applies it: no snapshot is ahead of the logs."""
        alone = (self._cold or self._member.role == "standalone") and self.logs
        return self._member.zxid if not alone else max(log.last for log in self.logs)


def _scanned(path: Path) -> tuple[ScannedLog, str]:
    summed = hashlib.sha256()
    with path.open("rb") as file:
        scanned = scan(file, sink=summed.update, deep=True)
    return scanned, summed.hexdigest()


def _sha256(path: Path, stretch: RecordStretch) -> str:
    with _opened(FileBytes(path, stretch.start, stretch.end), header()) as source:
        hashed = Hashed(source)
        hashed.drain()
    return hashed.sha256
