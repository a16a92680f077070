"""A repository as the place where a backup of ZooKeeper goes: what is new is stored, what is known is taken over."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta

from logkeep.errors import BackupFailed, UsageError
from logkeep.model.findings import Finding
from logkeep.model.ids import BackupId
from logkeep.model.segments import Codec, Collection
from logkeep.model.time import Clock, TokenSource, random_token
from logkeep.repository import layout
from logkeep.repository.attachments import put_attachment, read_attachment
from logkeep.repository.backup import OngoingBackup, Outcome, begin, check_wanted
from logkeep.repository.chain import Place
from logkeep.repository.fold import BackupEntry, Folded
from logkeep.repository.format import ZSTD_FRAMES, require_feature
from logkeep.repository.lease import DEFAULT_TTL
from logkeep.repository.source import check_source, ensure_source, read_manifest
from logkeep.repository.writing import Writing, writing
from logkeep.zookeeper.archive.claims import Claimed, Window, carried, claimed, cuts, snapshot_segment, window
from logkeep.zookeeper.archive.record import (
    KIND,
    ROLE,
    ConfigRecord,
    EnsembleRecord,
    LogRecord,
    MemberRecord,
    SnapshotRecord,
    known_from,
    log_of,
    log_record,
    snapshot_record,
)
from logkeep.zookeeper.archive.view import digest_at, view_of
from logkeep.zookeeper.packing import DEFAULT_LEVEL, StoredWriter
from logkeep.zookeeper.sink import Gathered, Known, MemberText

_GAP = "no file of this member holds them"


@dataclass(frozen=True)
class ArchiveShelf:
    """Objects under random names: what no commit names is garbage."""

    place: Place
    codec: Codec
    level: int = DEFAULT_LEVEL
    tokens: TokenSource = random_token

    def open_snapshot(self, member: str, history: str, name: str, zxid: int, *, packed: bool) -> StoredWriter:
        return self._opened(Collection.SNAPSHOTS, member, history, zxid, Codec.NONE if packed else self.codec)

    def open_log(self, member: str, history: str, first: int) -> StoredWriter:
        return self._opened(Collection.TXNLOGS, member, history, first, self.codec)

    def _opened(self, collection: Collection, member: str, history: str, first: int, codec: Codec) -> StoredWriter:
        token = self.tokens()
        name = layout.object_of(self.place.source, log_of(collection, member, history), first, token, codec)
        return StoredWriter(self.place.store.open_new(name), name, token, codec, self.level)


@dataclass
class ArchiveSink:
    """See `logkeep.zookeeper.sink.BackupSink`. Made by `archiving`."""

    session: Writing
    shelf: ArchiveShelf
    last: EnsembleRecord | None
    wanted: BackupId | None = None
    tags: tuple[str, ...] = ()
    entry: BackupEntry | None = None
    """The committed backup, once it is complete."""
    _ongoing: list[OngoingBackup] = field(default_factory=list)

    @property
    def known(self) -> Known:
        return replace(known_from(self.last), digest_at=self._digest_at)

    def _digest_at(self, zxid: int) -> int | None:
        completed = self.session.folded.completed
        return digest_at(view_of(self.session.place, completed[-1]), zxid) if completed else None

    def start(self) -> None:
        place, clock = self.session.place, self.session.clock
        if self.shelf.codec is Codec.ZSTD:
            require_feature(place.store, ZSTD_FRAMES)
        source = ensure_source(place, KIND, {}, clock())
        self._ongoing.append(begin(self.session, source, wanted=self.wanted, tags=self.tags))

    def complete(self, gathered: Gathered) -> str:
        ongoing = self._ongoing[-1]
        if any(not config.redacted and _tells(config.name) for config in gathered.config):
            raise UsageError("files with secrets are kept in bundles only", remedy="leave --include-secrets away")
        record, outcome = self._outcome(gathered, ongoing)
        ref = put_attachment(self.session.place, ongoing.id, ROLE, record, self.session.tokens())
        self.entry = ongoing.complete(
            Outcome(cut=outcome.cut, new=outcome.new, gaps=outcome.gaps, attachments=(ref,), findings=outcome.findings)
        )
        return str(ongoing.id)

    def _outcome(self, gathered: Gathered, ongoing: OngoingBackup) -> tuple[EnsembleRecord, Outcome]:
        old_logs, old_snapshots = carried(self.last, gathered.history)
        logs = (*old_logs, *map(log_record, gathered.logs))
        snapshots = (*old_snapshots, *map(snapshot_record, gathered.snapshots))
        windows = _windows(gathered, logs, snapshots)
        logs = tuple(r for r in logs if r.last >= windows[r.member].logs_from)
        snapshots = tuple(s for s in snapshots if s.zxid >= windows[s.member].snapshots_from)
        claims = self._claims(gathered)
        new = [*(s for c in claims for s in c.segments), *map(snapshot_segment, gathered.snapshots)]
        cut = cuts(logs, snapshots, windows)
        if not cut:
            raise BackupFailed("nothing was found that could be kept", subject=self.session.place.source)
        gaps = [gap for c in claims for gap in c.gaps]
        record = _record(self.session.place, ongoing.id, gathered, logs, snapshots, self.last)
        return record, Outcome(cut=cut, new=new, gaps=gaps, findings=_stored(gathered))

    def _claims(self, gathered: Gathered) -> list[Claimed]:
        known = self.known if self.last is not None and self.last.history == gathered.history else Known()
        result = []
        for member in gathered.members:
            reached = known.reached.get(member.name)
            logs = [p for p in gathered.logs if p.kept.member == member.name]
            before = reached.last if reached is not None else None
            result.append(claimed(member.name, gathered.history, logs, before, _GAP))
        return result


def _tells(name: str) -> bool:
    return not name.endswith((".cfg", "myid", ".env")) and "dynamic" not in name and not name.startswith("log")


def _stored(gathered: Gathered) -> tuple[Finding, ...]:
    return tuple(gathered.findings)


def _windows(
    gathered: Gathered, logs: tuple[LogRecord, ...], snapshots: tuple[SnapshotRecord, ...]
) -> dict[str, Window]:
    names = {r.member for r in (*logs, *snapshots)}
    return {
        name: window(
            [s for s in snapshots if s.member == name],
            [r for r in logs if r.member == name],
            gathered.snapshot_starts.get(name, _oldest([s.zxid for s in snapshots if s.member == name])),
            gathered.log_starts.get(name, _oldest([r.first for r in logs if r.member == name])),
        )
        for name in names
    }


def _oldest(zxids: list[int]) -> int | None:
    """A member that this run did not look at keeps all that it has."""
    return min(zxids, default=None)


def _record(
    place: Place,
    backup_id: BackupId,
    gathered: Gathered,
    logs: tuple[LogRecord, ...],
    snapshots: tuple[SnapshotRecord, ...],
    last: EnsembleRecord | None,
) -> EnsembleRecord:
    seen = {m.name for m in gathered.members}
    stay = tuple(m for m in (last.members if last is not None else ()) if m.name not in seen)
    there = {r.member for r in (*logs, *snapshots)}
    return EnsembleRecord(
        repository=place.repository,
        source=place.source,
        id=backup_id,
        history=gathered.history,
        backup_zxid=gathered.backup_zxid,
        members=(*_members(gathered), *(m for m in stay if m.name in there)),
        snapshots=snapshots,
        logs=logs,
        schemes=tuple(gathered.schemes),
        config=tuple(ConfigRecord(name=c.name, content=c.content, redacted=c.redacted) for c in gathered.config),
        left_out=tuple(gathered.left_out),
    )


def _members(gathered: Gathered) -> Iterator[MemberRecord]:
    for member in gathered.members:
        text = gathered.texts.get(member.name, MemberText())
        yield MemberRecord(
            name=member.name,
            version=member.version,
            host=member.host,
            data_dir=member.data_dir,
            log_dir=member.log_dir,
            role=member.role,
            zxid=member.zxid,
            current_epoch=member.current_epoch,
            accepted_epoch=member.accepted_epoch,
            mntr=text.mntr,
            stat=text.stat,
            conf=text.conf,
        )


def last_record(place: Place, folded: Folded) -> EnsembleRecord | None:
    """What the newest backup of this source knew. Raises Damaged."""
    if not folded.completed:
        return None
    return read_attachment(place, read_manifest(place, folded.completed[-1]), ROLE, EnsembleRecord)


@contextmanager
def archiving(
    place: Place,
    *,
    clock: Clock,
    tokens: TokenSource,
    codec: Codec = Codec.NONE,
    level: int = DEFAULT_LEVEL,
    wanted: BackupId | None = None,
    tags: tuple[str, ...] = (),
    lease_ttl: timedelta = DEFAULT_TTL,
) -> Iterator[ArchiveSink]:
    """Hold the source's lease, know its newest backup, and be ready to take the next one."""
    with writing(place, "backup", clock, tokens, lease_ttl) as session:
        check_wanted(wanted, session.folded.last_id)
        check_source(place, KIND, {})
        last = last_record(place, session.folded)
        yield ArchiveSink(session, ArchiveShelf(place, codec, level, tokens), last, wanted, tags)
