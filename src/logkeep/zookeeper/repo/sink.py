"""Store a ZooKeeper backup in a repository: new data is written, data of the previous backup is carried over."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from typing import TypeVar

import msgspec

from logkeep.errors import BackupFailed, Damaged, ObjectMissing, StoreError, StoreFull, UsageError
from logkeep.model.findings import Finding
from logkeep.model.ids import BackupId
from logkeep.model.segments import Codec
from logkeep.model.segments import Collection as Kind
from logkeep.model.time import Clock, TokenSource, random_token
from logkeep.repository.backups.attachments import put_attachment, read_attachment
from logkeep.repository.backups.backup import FinishedRun, OngoingBackup, begin, check_wanted
from logkeep.repository.backups.source import check_source, ensure_source, read_manifest
from logkeep.repository.backups.verification import known_damaged
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.fold import BackupEntry, Folded
from logkeep.repository.chain.format import ZSTD_FRAMES, require_feature
from logkeep.repository.chain.lease import DEFAULT_TTL
from logkeep.repository.chain.write_session import Writing, writing
from logkeep.repository.object_writer import StoredWriter
from logkeep.zookeeper.model.archived import ArchivedLog, ArchivedSnapshot
from logkeep.zookeeper.model.sink import CompletedBackup, CopiedAgain, Gathered, Known, MemberText
from logkeep.zookeeper.repo.claims import (
    DAMAGED,
    ClaimedPositions,
    carried_over,
    claim_logs,
    damaged_segment,
    log_cuts,
    snapshot_segment,
)
from logkeep.zookeeper.repo.current_record import repaired_record
from logkeep.zookeeper.repo.record import (
    KIND,
    ROLE,
    ConfigRecord,
    EnsembleRecord,
    MemberRecord,
    damaged_record,
    known_from,
    log_of,
    log_record,
    snapshot_record,
    without_proof,
)
from logkeep.zookeeper.repo.repair_commit import commit_repairs
from logkeep.zookeeper.repo.repair_from_server import copied_again, repairs_from_server, rests_on
from logkeep.zookeeper.repo.time_window import first_since, with_whole_objects, within
from logkeep.zookeeper.repo.view import ArchiveView, damaged_in, digest_at, tree_at_end, view_of
from logkeep.zookeeper.repo.whole_objects import whole_view
from logkeep.zookeeper.timeline.restorable import Restorable, check_restorable

_Answer = TypeVar("_Answer")


@dataclass(frozen=True)
class ArchiveObjects:
    """Writes objects under random names: those that no commit names are garbage."""

    place: SourceRef
    codec: Codec
    tokens: TokenSource = random_token
    apart: str = "tail"
    """The history of the tails of this run; no other run uses it."""

    def open_snapshot(self, member: str, history: str, name: str, zxid: int, *, packed: bool) -> StoredWriter:
        return self._open(Kind.SNAPSHOTS, member, history, zxid, Codec.NONE if packed else self.codec)

    def open_log(self, member: str, history: str, first: int, *, tail: bool = False) -> StoredWriter:
        return self._open(Kind.TXNLOGS, member, self.apart if tail else history, first, self.codec)

    def open_damaged(self, member: str, history: str, name: str, zxid: int) -> StoredWriter:
        return self._open(Kind.SNAPSHOTS, member, DAMAGED, zxid, Codec.NONE)

    def delete_all(self, run: str) -> None:
        """Delete every object of a run that committed nothing. What cannot be deleted is garbage for `prune`."""
        place = self.place
        with suppress(StoreError):
            for kind in (Kind.SNAPSHOTS, Kind.TXNLOGS):
                names = [info.name for info in place.store.list(layout.collection_root(place.source, kind))]
                for name in names:
                    if f".{run}" in name.rpartition("/")[2]:
                        place.store.delete(name)

    def _open(self, collection: Kind, member: str, history: str, first: int, codec: Codec) -> StoredWriter:
        token = self.tokens()
        name = layout.object_of(self.place.source, log_of(collection, member, history), first, token, codec)
        return StoredWriter(self.place.store.open_new(name), name, token, codec)


@dataclass(frozen=True)
class RunTokens:
    """A `TokenSource` whose tokens begin with 10 random digits of one run, so that its objects can be found."""

    run: str

    def __call__(self) -> str:
        return self.run + random_token()[:6]


@dataclass
class ArchiveSink:
    """A `logkeep.zookeeper.model.sink.BackupSink`. Made by `archiving`."""

    session: Writing
    new_objects: ArchiveObjects
    last: EnsembleRecord | None
    wanted: BackupId | None = None
    tags: tuple[str, ...] = ()
    group: tuple[str, ...] = ()
    history_window: timedelta | None = None
    """The history that the backup must include; None: all that is archived."""
    entry: BackupEntry | None = None
    """The committed backup, set by `complete`."""
    completing: bool = False
    """From here on a commit may name what was stored."""
    _ongoing: list[OngoingBackup] = field(default_factory=list)
    _unreadable: list[str] = field(default_factory=list)
    """Names of objects."""

    @property
    def known(self) -> Known:
        return replace(
            known_from(self.last),
            digest_at=lambda zxid: self._from_base(lambda base: digest_at(base, zxid)),
            tree=lambda: self._from_base(tree_at_end),
            damaged=self._damaged,
            unreadable=lambda: tuple(self._unreadable),
        )

    @property
    def url(self) -> str:
        return self.session.place.store.url

    def _from_base(self, read: Callable[[ArchiveView], _Answer | None]) -> _Answer | None:
        """None for a damaged archive; the damaged object is noted, so that the caller can report the reason."""
        base = self._base()
        try:
            return read(base) if base is not None else None
        except (Damaged, ObjectMissing) as error:
            self._unreadable.append(error.subject)
            return None

    def _damaged(self) -> tuple[ArchivedLog | ArchivedSnapshot, ...]:
        """Logs and snapshots that the next backup needs, and that a verification has found damaged."""
        completed = self.session.folded.completed
        names = known_damaged(self.session.place, {e.id for e in completed}) if completed else {}
        return damaged_in(whole_view(view_of(self.session.place, completed[-1])), names) if names else ()

    def start(self) -> None:
        place, clock = self.session.place, self.session.clock
        if self.new_objects.codec is Codec.ZSTD:
            require_feature(place.store, ZSTD_FRAMES)
        source = ensure_source(place, KIND, {}, clock())
        self._ongoing.append(begin(self.session, source, wanted=self.wanted, tags=self.tags, group=self.group))

    def complete(self, gathered: Gathered) -> CompletedBackup:
        self.completing = True
        ongoing = self._ongoing[-1]
        if any(not config.redacted and _may_hold_secrets(config.name) for config in gathered.config):
            raise UsageError("only bundles can hold files with secrets", remedy="leave --include-secrets out")
        repaired, base = self._repair(gathered.again), self._base()
        self.last = base.record if base is not None else None  # with the objects of today: pieces may be merged
        held = self._all_included(gathered, base)
        restorable = self._restorable(gathered, held)
        record = _record(self.session.place, ongoing.id, gathered, held, self.last)
        ref = put_attachment(self.session.place, ongoing.id, ROLE, record, self.session.tokens())
        claims = self._claims(gathered, restorable.believed)
        new = [*(s for c in claims for s in c.segments), *map(snapshot_segment, gathered.snapshots)]
        self.entry = ongoing.complete(
            FinishedRun(
                cut=log_cuts(held.logs, held.snapshots, gathered.damaged),
                new=[*new, *map(damaged_segment, gathered.damaged)],
                gaps=[gap for c in claims for gap in c.gaps],
                attachments=(ref,),
                findings=(*gathered.findings, *repaired, *restorable.findings),
            )
        )
        return CompletedBackup(str(ongoing.id), (*repaired, *restorable.findings, *rests_on(ongoing.rests_on)))

    def _repair(self, again: Sequence[CopiedAgain]) -> tuple[Finding, ...]:
        """Replace damaged objects by what was copied again, for all backups, before this one includes them."""
        place, base = self.session.place, self._base() if again else None
        repairs = list(repairs_from_server(base, again)) if base is not None else []
        if repairs:
            commit_repairs(self.session, [repair for _, repair in repairs])
        return tuple(copied_again(one, layout.segment(place.source, repair.old)) for one, repair in repairs)

    def _all_included(self, gathered: Gathered, base: ArchiveView | None) -> "_Held":
        """Everything that the backup will include: what is carried over and still needed, and what is new."""
        old_logs, old_snapshots = carried_over(self.last, gathered.history)
        replaced = {(p.kept.member, p.kept.name) for p in gathered.snapshots}
        logs = [*old_logs, *(log_record(p, self.new_objects.apart) for p in gathered.logs)]
        snapshots = [*(s for s in old_snapshots if (s.member, s.name) not in replaced)]
        snapshots += map(snapshot_record, gathered.snapshots)
        if not logs and not snapshots:
            raise BackupFailed("there is nothing to back up", subject=self.session.place.source)
        held = _Held([], [])
        for member in sorted({*(r.member for r in logs), *(s.member for s in snapshots)}):
            of_member = [r for r in logs if r.member == member]
            chosen = within(of_member, [s for s in snapshots if s.member == member], self._since_ms, first_since(base))
            held.logs.extend(with_whole_objects(base, of_member, chosen[0]))
            held.snapshots.extend(chosen[1])
        return held

    @property
    def _since_ms(self) -> int | None:
        if self.history_window is None:
            return None
        return int((self.session.clock() - self.history_window).timestamp() * 1000)

    def _restorable(self, gathered: Gathered, held: "_Held") -> Restorable:
        """Plans with what a reader of the backup will find."""
        seen = {m.name for m in gathered.members}
        stay = [m for m in (self.last.members if self.last else ()) if m.name not in seen]
        members, source = [*gathered.members, *stay], self.session.place.source
        return check_restorable(members, held.snapshots, held.logs, gathered.history, source)

    def _base(self) -> ArchiveView | None:
        """The newest backup, which the next one continues."""
        completed = self.session.folded.completed
        return view_of(self.session.place, completed[-1]) if completed else None

    def _claims(self, gathered: Gathered, believed: Collection[tuple[int, int]]) -> list[ClaimedPositions]:
        known = self.known if self.last is not None and self.last.history == gathered.history else Known()
        found = []
        for member in gathered.members:
            reached = known.reached.get(member.name)
            logs = [p for p in gathered.logs if p.kept.member == member.name]
            found.append(claim_logs(logs, reached.last if reached else None, believed, self.new_objects.apart))
        return found


@dataclass(frozen=True)
class _Held:
    logs: list[ArchivedLog]
    snapshots: list[ArchivedSnapshot]


def _may_hold_secrets(name: str) -> bool:
    return not name.endswith((".cfg", "myid", ".env")) and "dynamic" not in name and not name.startswith("log")


def _record(
    place: SourceRef,
    backup_id: BackupId,
    gathered: Gathered,
    held: _Held,
    last: EnsembleRecord | None,
) -> EnsembleRecord:
    seen = {m.name for m in gathered.members}
    stay = tuple(m for m in (last.members if last is not None else ()) if m.name not in seen)
    there = {*(r.member for r in held.logs), *(s.member for s in held.snapshots)}
    return EnsembleRecord(
        repository=place.repository,
        source=place.source,
        id=backup_id,
        history=gathered.history,
        backup_zxid=gathered.backup_zxid,
        members=(*_members(gathered), *(m for m in stay if m.name in there)),
        snapshots=tuple(held.snapshots),
        logs=tuple(map(without_proof, held.logs)),
        damaged=tuple(map(damaged_record, gathered.damaged)),
        schemes=tuple(gathered.schemes),
        config=tuple(ConfigRecord(name=c.name, content=c.content, redacted=c.redacted) for c in gathered.config),
        left_out=tuple(gathered.left_out),
    )


def _members(gathered: Gathered) -> Iterator[MemberRecord]:
    for member in gathered.members:
        text = gathered.texts.get(member.name, MemberText())
        yield MemberRecord(**msgspec.structs.asdict(member) | asdict(text))


def last_record(place: SourceRef, folded: Folded) -> EnsembleRecord | None:
    """The record of the newest backup of this source. Raises Damaged."""
    if not folded.completed:
        return None
    manifest = read_manifest(place, folded.completed[-1])
    record = read_attachment(place, manifest, ROLE, EnsembleRecord)
    return None if record is None else repaired_record(place, folded, manifest, record)


@contextmanager
def archiving(
    place: SourceRef,
    *,
    clock: Clock,
    tokens: TokenSource,
    codec: Codec = Codec.NONE,
    wanted: BackupId | None = None,
    tags: tuple[str, ...] = (),
    group: tuple[str, ...] = (),
    history_window: timedelta | None = None,
    lease_ttl: timedelta = DEFAULT_TTL,
) -> Iterator[ArchiveSink]:
    """Hold the source's lease, read its newest backup, and prepare the next one."""
    with writing(place, "backup", clock, tokens, lease_ttl) as session:
        check_wanted(wanted, session.folded.last_id)
        check_source(place, KIND, {})
        last = last_record(place, session.folded)
        run = tokens()[:10]
        new_objects = ArchiveObjects(place, codec, RunTokens(run), f"tail-{tokens()}")
        sink = ArchiveSink(session, new_objects, last, wanted, tags, group, history_window)
        try:
            yield sink
        except StoreFull:
            if not sink.completing:
                new_objects.delete_all(run)
            raise
