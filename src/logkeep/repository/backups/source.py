"""One source of a repository for readers: its backups, their states, their manifests."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from logkeep.errors import AlreadyExists, Damaged, ObjectMissing, UnknownBackup, UsageError
from logkeep.model.ids import BackupId, choose_id
from logkeep.model.time import rfc3339
from logkeep.repository.backups.detached_backup import derived_failure, detached_requests
from logkeep.repository.backups.journal import BackupRequest, open_ids, read_request, receipts
from logkeep.repository.backups.manifest import Manifest
from logkeep.repository.backups.states import Completed, Failed, State, decided, undecided
from logkeep.repository.backups.trim_floors import TrimmedCut, trimmed_cuts, untrimmed, with_floors
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef, follow, read_chain
from logkeep.repository.chain.documents import SourceDocument, open_in_place, read, seal, seal_of
from logkeep.repository.chain.fold import BackupEntry, Folded
from logkeep.repository.chain.lease import LeaseDocument, LeaseState, check_head, lease_state, read_lease
from logkeep.repository.chain.owner import Owner
from logkeep.repository.chain.trims import floors_of
from logkeep.store.base import Store


class SourceFacts(SourceDocument, frozen=True, kw_only=True, tag="source"):
    """The system that is backed up under this source."""

    kind: str
    identity: dict[str, str]
    """What identifies the system, such as a Kafka cluster id."""
    created: str


def source_names(store: Store) -> list[str]:
    """All sources of a repository. Skips from one to the next: they may have millions of objects."""
    names, after = [], ""
    while first := next(iter(store.list(layout.SOURCES, after)), None):
        source = layout.source_at(first.name)
        if source is None:  # a foreign file beside the sources
            after = first.name
            continue
        names.append(source)
        after = layout.past_source(source)
    return sorted(names)


def read_facts(place: SourceRef) -> SourceFacts | None:
    name = layout.source_document(place.source)
    try:
        facts = read(place.store, name, SourceFacts, place.repository)
    except ObjectMissing:
        return None
    if facts.source != place.source:
        raise Damaged("the document belongs to another source", subject=name)
    return facts


def ensure_source(place: SourceRef, kind: str, identity: dict[str, str], now: datetime) -> SourceFacts:
    """Register a source, or check that it is the same system. Raises UsageError if it is another."""
    facts = SourceFacts(
        repository=place.repository, source=place.source, kind=kind, identity=identity, created=rfc3339(now)
    )
    try:
        place.store.put_new(layout.source_document(place.source), seal(facts))
    except AlreadyExists:
        known = read_facts(place)
        if known is None:
            raise
        _check_same_system(known, facts)
        return known
    return facts


def check_source(place: SourceRef, kind: str, identity: dict[str, str]) -> None:
    """Raises UsageError if the source is registered for another system. Writes nothing."""
    known = read_facts(place)
    if known is not None:
        found = SourceFacts(
            repository=place.repository, source=place.source, kind=kind, identity=identity, created=known.created
        )
        _check_same_system(known, found)


def _check_same_system(known: SourceFacts, found: SourceFacts) -> None:
    if (known.kind, known.identity) != (found.kind, found.identity):
        raise UsageError(
            f"it holds backups of {_system_text(known)}, not of {_system_text(found)}",
            subject=f"source {known.source}",
            remedy="choose another --source name for this system, or check which system you are connected to",
        )


def _system_text(facts: SourceFacts) -> str:
    """`kafka with cluster_id I_CW…`"""
    identity = ", ".join(f"{key} {value}" for key, value in sorted(facts.identity.items()))
    return f"{facts.kind} with {identity}" if identity else facts.kind


@dataclass(frozen=True)
class SourceView:
    """The state of a source at one moment."""

    place: SourceRef
    folded: Folded
    lease: LeaseDocument | None
    lease_state: LeaseState
    open_ids: tuple[BackupId, ...]
    now: datetime
    notes: Mapping[int, tuple[str, ...]]
    """The notes of receipts of detached backups, by id. They were read before the lease and the chain."""
    warnings: tuple[str, ...] = ()

    @property
    def worked_on(self) -> int | None:
        """The backup that the current lease holder is working on."""
        if self.lease is None or self.lease_state is not LeaseState.HELD:
            return None
        return self.lease.backup

    @cached_property
    def _decided(self) -> dict[int, State]:
        return decided(self.folded)

    def state(self, backup_id: BackupId) -> State:
        known = self._decided.get(backup_id)
        if known is not None:
            return known
        try:
            request = read_request(self.place, backup_id) if backup_id in self.open_ids else None
        except Damaged as damage:
            return Failed(backup_id, f"its request cannot be read ({damage.what})", False)
        return undecided(backup_id, self.folded.last_id, request, self.worked_on, self._failure)

    def _failure(self, request: BackupRequest) -> str | None:
        return derived_failure(request, self.notes.get(request.id, ()), self.now)

    def states(self) -> list[State]:
        """Every backup in any state, in order of id."""
        return [self.state(BackupId(i)) for i in sorted({*self._decided, *self.open_ids})]

    def completed(self, text: str) -> BackupEntry:
        """The completed backup that the user names by an id, a prefix or `latest`."""
        ids = [BackupId(e.id) for e in self.folded.completed]
        others = [s.id for s in self.states() if not isinstance(s, Completed)]
        chosen = choose_id(text, ids if text == "latest" else sorted([*ids, *others]))
        entry = self.folded.entry(chosen)
        if entry is None:
            state = self.state(chosen)
            raise UnknownBackup(f"backup {chosen} is {state.name}, not completed", subject=self.place.source)
        return entry


def view(place: SourceRef, now: datetime, here: Owner) -> SourceView:
    """Read a source: ongoing requests and their receipts, the lease, the chain, in this order. Writes nothing.

    The order matters: a backup that is committed while we read must be found in the chain, not taken for an abandoned
    or a failed one. (The first read of the chain only limits the listing of requests.)
    """
    early = read_chain(place)
    opened = open_ids(place, early.last_id)
    notes = {
        request.id: tuple(receipt.note for receipt in receipts(place, BackupId(request.id)))
        for request in detached_requests(place, opened)
    }
    lease, trouble = _lease(place)
    folded = follow(place, early)
    return SourceView(
        place=place,
        folded=folded,
        lease=lease,
        lease_state=lease_state(lease, now, here) if lease else LeaseState.FREE,
        open_ids=tuple(i for i in opened if i > folded.last_id),
        now=now,
        notes=notes,
        warnings=(*trouble, *_warnings(folded, lease)),
    )


def _lease(place: SourceRef) -> tuple[LeaseDocument | None, tuple[str, ...]]:
    """The lease; an unreadable one must not prevent reading backups."""
    try:
        found = read_lease(place)
    except Damaged as damage:
        return None, (f"{damage}; run `logkeep repair`",)
    return (found[0] if found else None), ()


def _warnings(folded: Folded, lease: LeaseDocument | None) -> tuple[str, ...]:
    """Problems that do not stop a reader; they stop a writer, and `verify` reports them as damage."""
    if lease is None:
        return ()
    try:
        check_head(folded, lease.head, layout.commits(lease.source))
    except Damaged as damage:
        return (f"{damage}; {damage.remedy}",)
    return ()


def _lost_manifest(backup_id: int) -> str:
    return (
        "bring the object back from the store's versions or from a copy; if it is lost, `logkeep verify` records the "
        f"damage, `logkeep delete {backup_id}` removes this backup, and the next one continues from the one before it"
    )


def read_manifest(place: SourceRef, entry: BackupEntry) -> Manifest:
    """The manifest of a backup, without what was trimmed. Raises Damaged if it is missing or not the committed one."""
    name = layout.manifest(place.source, BackupId(entry.id), entry.manifest.token)
    try:
        data = place.store.get(name, Manifest.limit)
    except ObjectMissing as error:
        raise Damaged("the manifest is missing", subject=name, remedy=_lost_manifest(entry.id)) from error
    manifest = open_in_place(data, name, Manifest, place.repository)
    if seal_of(data) != entry.manifest.sha256 or len(data) != entry.manifest.size:
        raise Damaged("it is not the manifest that was committed", subject=name, remedy=_lost_manifest(entry.id))
    if (manifest.source, manifest.id) != (place.source, entry.id):
        raise Damaged("the manifest belongs to another backup", subject=name)
    return with_floors(manifest, floors_of(entry.trims)) if entry.trims else manifest


def read_trimmed_cuts(place: SourceRef, entry: BackupEntry) -> list[TrimmedCut]:
    """The logs of a backup that were trimmed. Reads nothing where none was."""
    if not entry.trims:
        return []
    return trimmed_cuts(read_manifest(place, untrimmed(entry)), read_manifest(place, entry))
