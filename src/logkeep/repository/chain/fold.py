"""Folds commits into the state of a source. Pure; an impossible step is damage, never ignored."""

from collections.abc import Container
from typing import ClassVar

import msgspec

from logkeep.errors import Damaged
from logkeep.model.ids import StoredId
from logkeep.model.segments import LogName, Token
from logkeep.repository.chain.actions import (
    FIRST_GENERATION,
    NO_PREDECESSOR,
    WITH_BURIAL,
    WITH_FOLD,
    WITH_GENERATIONS,
    WITH_TRIM,
    Action,
    BackupAction,
    BuryAction,
    CheckpointAction,
    Commit,
    DeleteAction,
    FailedAction,
    FoldProof,
    GenerationsAction,
    GenerationStart,
    HoldAction,
    JoinBurialsAction,
    ObjectRef,
    PartRef,
    ReleaseAction,
    RepairAction,
    ReplaceAction,
    ReplayedAction,
    Summary,
    TrimAction,
)
from logkeep.repository.chain.documents import MIB, SourceDocument
from logkeep.repository.chain.trims import Trim, TrimmedAway, added, joined


class BackupEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A completed backup as the chain records it."""

    id: StoredId
    generation: int
    committed: str
    manifest: ObjectRef
    summary: Summary
    hold: str | None = None
    """Why the user pinned it; None if it is not pinned."""
    trimmed: TrimmedAway | msgspec.UnsetType = msgspec.UNSET
    """What trims took from it; absent if nothing."""
    trims: tuple[Trim, ...] | msgspec.UnsetType = msgspec.UNSET
    """The trims of the source that apply to it: `read_manifest` begins its logs there. Never stored with the entry."""


class FailedEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A failed id. Never removed: failed is final."""

    id: StoredId
    generation: int
    recorded: str
    reason: str


class Replacement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parts that replace an old part. Later manifests name the new parts themselves."""

    old: Token
    new: tuple[PartRef, ...]
    generation: int
    """Applies only to backups committed before it."""
    keep_old: bool


class Burial(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Offsets that backups from `first` on leave out. Forgotten only if `first` fails: otherwise the next backup may
    continue the log."""

    log: LogName
    first: StoredId
    object: ObjectRef
    offsets: int


class FoldedCut(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The cut of a backup that the last fold of a log honoured."""

    id: StoredId
    start: int
    end: int


class FoldedLog(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A log that was folded, by its last fold: in `[start, end)` only these cuts are restore points."""

    log: LogName
    start: int
    end: int
    last_id: int
    """Backups up to this id were there, or were gone already."""
    generation: int
    committed: str
    dense_to: int
    """Up to this id, every offset of the log had its record before the fold; 0: there were holes already."""
    cuts: tuple[FoldedCut, ...]


class CatchUp(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new copy of a topic that is not active yet."""

    token: Token
    topic: str
    topic_id: str
    number: int
    reason: str
    began: str
    generation: int
    """The generation of the commit that began it."""


class Folded(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The state of a source after the commits up to a generation."""

    generation: int = FIRST_GENERATION - 1
    head: str = NO_PREDECESSOR
    """The seal of the last commit."""
    head_time: str = ""
    last_id: int = 0
    """The largest id that was ever decided; nothing at or below it can be started again."""
    completed: tuple[BackupEntry, ...] = ()
    """In order of commit."""
    failed: tuple[FailedEntry, ...] = ()
    replacements: tuple[Replacement, ...] = ()
    repaired_generation: int = 0
    """The last repair after a loss: garbage collection spares objects older than its commit for a while."""
    buried: tuple[Burial, ...] | msgspec.UnsetType = msgspec.UNSET
    """In order of commit; absent if there are none."""
    trims: tuple[Trim, ...] | msgspec.UnsetType = msgspec.UNSET
    """In order of commit; absent if there are none."""
    folds: tuple[FoldedLog, ...] | msgspec.UnsetType = msgspec.UNSET
    """One for each log that was folded; absent if there are none."""
    catch_ups: tuple[CatchUp, ...] | msgspec.UnsetType = msgspec.UNSET
    """In order of commit; absent if there are none."""
    generation_starts: tuple[GenerationStart, ...] | msgspec.UnsetType = msgspec.UNSET
    """One for each topic that is known by it; absent if there are none."""

    def entry(self, backup_id: int) -> BackupEntry | None:
        return next((e for e in self.completed if e.id == backup_id), None)

    def burials(self, backup_id: int) -> tuple[Burial, ...]:
        """The burials that apply to a backup."""
        return tuple(b for b in self.buried or () if b.first <= backup_id)

    def folded_logs(self) -> dict[LogName, FoldedLog]:
        return {each.log: each for each in self.folds or ()}

    def failure(self, backup_id: int) -> FailedEntry | None:
        return next((f for f in self.failed if f.id == backup_id), None)

    @property
    def version(self) -> int:
        """The version of a checkpoint with this state."""
        fenced = (
            (self.buried, WITH_BURIAL),
            (self.trims, WITH_TRIM),
            (self.folds, WITH_FOLD),
            (self.catch_ups or self.generation_starts, WITH_GENERATIONS),
        )
        return max(version if some else 1 for some, version in fenced)

    def without(self, ids: Container[int]) -> "Folded":
        """The state if these backups were deleted."""
        return msgspec.structs.replace(self, completed=tuple(e for e in self.completed if e.id not in ids))

    def after_trim(self, trim: Trim) -> "Folded":
        """The state if backups were trimmed."""
        return msgspec.structs.replace(self, trims=(*(self.trims or ()), trim)).with_trims()

    def with_trims(self) -> "Folded":
        """Each backup with the trims that apply to it."""
        return msgspec.structs.replace(self, completed=tuple(_trimmed(e, self.trims or ()) for e in self.completed))

    def without_trims(self) -> "Folded":
        """The state as it is stored: the trims of the source once, and not with every backup."""
        return msgspec.structs.replace(self, completed=tuple(_trimmed(e, ()) for e in self.completed))


def _trimmed(entry: BackupEntry, trims: tuple[Trim, ...]) -> BackupEntry:
    own = tuple(trim for trim in trims if entry.id < trim.before) or msgspec.UNSET
    return entry if own == entry.trims else msgspec.structs.replace(entry, trims=own)


class Checkpoint(SourceDocument, frozen=True, kw_only=True, tag="checkpoint"):
    """A stored folded chain, so that old commits need not be read. Valid only if a commit pins it."""

    limit: ClassVar[int] = 256 * MIB
    newest: ClassVar[int] = max(WITH_BURIAL, WITH_TRIM, WITH_FOLD, WITH_GENERATIONS)

    folded: Folded


class Folding:
    """A chain being folded: mutable inside, `Folded` outside."""

    def __init__(self, start: Folded) -> None:
        self._generation, self._head, self._last_id = start.generation, start.head, start.last_id
        self._head_time, self._repaired_generation = start.head_time, start.repaired_generation
        self._completed = {e.id: e for e in start.completed}
        self._failed = {f.id: f for f in start.failed}
        self._replacements = {r.old: r for r in start.replacements}
        self._buried = list(start.buried or ())
        self._trims = list(start.trims or ())
        self._folds = start.folded_logs()
        self._catch_ups = {c.token: c for c in start.catch_ups or ()}
        self._starts = {s.topic: s for s in start.generation_starts or ()}

    @property
    def generation(self) -> int:
        return self._generation

    @property
    def head(self) -> str:
        return self._head

    def apply(self, commit: Commit, seal: str, where: str) -> None:
        """Take one more commit. Raises Damaged when it does not continue the chain or says the impossible."""
        skips = isinstance(commit.action, RepairAction) and commit.generation > self._generation
        if isinstance(commit.action, RepairAction) and commit.action.after != self._generation:
            raise Damaged(f"a repair after generation {commit.action.after} follows {self._generation}", subject=where)
        if commit.generation != self._generation + 1 and not skips:
            raise Damaged(
                f"generation {self._generation + 1} is missing: the next commit found is {commit.generation}",
                subject=where,
            )
        if commit.previous != self._head:
            raise Damaged("the commit does not continue the chain: it follows another commit", subject=where)
        self._act(commit.action, commit.generation, commit.time, where)
        self._generation, self._head, self._head_time = commit.generation, seal, commit.time

    def replay(self, replayed: ReplayedAction, where: str) -> None:
        """Apply the action of a lost commit, as part of a repair. Raises Damaged if it is impossible here."""
        self._act(replayed.action, replayed.generation, replayed.time, where)

    def result(self) -> Folded:
        return Folded(
            generation=self._generation,
            head=self._head,
            head_time=self._head_time,
            last_id=self._last_id,
            completed=tuple(self._completed.values()),
            failed=tuple(self._failed.values()),
            replacements=tuple(self._replacements.values()),
            repaired_generation=self._repaired_generation,
            buried=tuple(self._buried) or msgspec.UNSET,
            trims=tuple(self._trims) or msgspec.UNSET,
            folds=tuple(self._folds.values()) or msgspec.UNSET,
            catch_ups=tuple(self._catch_ups.values()) or msgspec.UNSET,
            generation_starts=tuple(self._starts.values()) or msgspec.UNSET,
        ).with_trims()

    def _act(self, action: Action, generation: int, time: str, where: str) -> None:
        match action:
            case BackupAction():
                self._complete(action, generation, time, where)
            case FailedAction():
                self._claim(action.id, where)
                self._failed[action.id] = FailedEntry(
                    id=action.id, generation=generation, recorded=time, reason=action.reason
                )
                # Only this run read them. The log may have lost its end since, and the offsets may be other records.
                self._buried = [b for b in self._buried if b.first != action.id]
            case DeleteAction():
                self._delete(action, where)
            case HoldAction():
                self._pin(action.id, action.reason, where)
            case ReleaseAction():
                self._pin(action.id, None, where)
            case ReplaceAction():
                self._replace(action, generation, time)
            case RepairAction():
                self._repaired_generation = generation
                for each in action.replayed:
                    self.replay(each, where)
            case BuryAction() | JoinBurialsAction():
                self._bury(action)
            case TrimAction():
                self._trim(action, where)
            case GenerationsAction():
                self._generations(action, generation, time)
            case CheckpointAction():
                pass

    def _delete(self, action: DeleteAction, where: str) -> None:
        for backup_id in [self._completed_entry(i, where).id for i in action.ids]:
            del self._completed[backup_id]
        self._forget_replacements()
        self._trims = [t for t in self._trims if any(i < t.before for i in self._completed)]

    def _bury(self, action: BuryAction | JoinBurialsAction) -> None:
        """Add burials, which may replace earlier ones that they join. After a repair some of these may be missing: the
        new object has their offsets too."""
        if isinstance(action, BuryAction):
            new = [(action.first, each) for each in action.logs]
        else:
            gone = {token for joined in action.logs for token in joined.instead_of}
            self._buried = [b for b in self._buried if b.object.token not in gone]
            new = [(joined.first, joined.buried) for joined in action.logs]
        self._buried += [
            Burial(log=each.log, first=first, object=each.object, offsets=each.offsets) for first, each in new
        ]

    def _generations(self, action: GenerationsAction, generation: int, time: str) -> None:
        for ended in action.ended:
            self._catch_ups.pop(ended.token, None)
        for start in action.starts:
            self._starts[start.topic] = start
        for new in action.begun:
            self._catch_ups[new.token] = CatchUp(
                token=new.token,
                topic=new.topic,
                topic_id=new.topic_id,
                number=new.number,
                reason=new.reason,
                began=time,
                generation=generation,
            )
            known = self._starts.get(new.topic)
            same = known is not None and known.topic_id == new.topic_id
            since = known.began if known is not None and same else time
            self._starts[new.topic] = GenerationStart(new.topic, new.topic_id, since, new.number)

    def _switch(self, token: str) -> None:
        """Make a catch-up the active copy. One that is not known was lost with its commit; the backup has all that it
        copied, and is valid without it."""
        done = self._catch_ups.pop(token, None)
        if done is not None:
            self._starts[done.topic] = GenerationStart(done.topic, done.topic_id, done.began, done.number)

    def _complete(self, action: BackupAction, generation: int, time: str, where: str) -> None:
        self._claim(action.id, where)
        self._completed[action.id] = BackupEntry(
            id=action.id,
            generation=generation,
            committed=time,
            manifest=action.manifest,
            summary=action.summary,
        )
        for token in action.switched or ():
            self._switch(token)

    def _trim(self, action: TrimAction, where: str) -> None:
        for lost in action.backups:
            entry = self._completed_entry(lost.id, where)
            if lost.id >= action.before:
                raise Damaged(f"the commit trims backup {lost.id}, which is not before {action.before}", subject=where)
            taken = added(entry.trimmed, TrimmedAway(lost.segments, lost.records, lost.stored_bytes))
            self._completed[lost.id] = msgspec.structs.replace(entry, trimmed=taken)
        self._trims = joined(self._trims, action)

    def _claim(self, backup_id: int, where: str) -> None:
        if backup_id <= self._last_id:
            raise Damaged(f"backup id {backup_id} is not larger than {self._last_id}", subject=where)
        self._last_id = backup_id

    def _completed_entry(self, backup_id: int, where: str) -> BackupEntry:
        entry = self._completed.get(backup_id)
        if entry is None:
            raise Damaged(f"the commit refers to backup {backup_id}, which does not exist", subject=where)
        return entry

    def _pin(self, backup_id: int, reason: str | None, where: str) -> None:
        entry = self._completed_entry(backup_id, where)
        self._completed[backup_id] = msgspec.structs.replace(entry, hold=reason)

    def _replace(self, action: ReplaceAction, generation: int, time: str) -> None:
        """Earlier replacements by a part that is replaced now refer to its successors: a lookup is always one step."""
        news = {p.old: p.new for p in action.parts}
        for old, earlier in self._replacements.items():
            onward = tuple(ref for known in earlier.new for ref in news.get(known.token, (known,)))
            if onward != earlier.new:
                self._replacements[old] = msgspec.structs.replace(earlier, new=onward, generation=generation)
        for part in action.parts:
            self._replacements[part.old] = Replacement(
                old=part.old, new=part.new, generation=generation, keep_old=action.keep_old
            )
        self._forget_replacements()
        if action.fold:
            self._remember_fold(action.fold, generation, time)

    def _remember_fold(self, proof: FoldProof, generation: int, time: str) -> None:
        """The last fold of a log is enough: it honoured what was left of the cuts of those before it."""
        before = self._folds.get(proof.log)
        self._folds[proof.log] = FoldedLog(
            log=proof.log,
            start=min(proof.start, before.start) if before else proof.start,
            end=max(proof.end, before.end) if before else proof.end,
            last_id=proof.last_id,
            generation=generation,
            committed=time,
            dense_to=proof.last_id if proof.dense else before.dense_to if before else 0,
            cuts=tuple(FoldedCut(cut.id, cut.start, cut.end) for cut in proof.cuts),
        )

    def _forget_replacements(self) -> None:
        oldest = min((e.generation for e in self._completed.values()), default=2**63)
        self._replacements = {old: r for old, r in self._replacements.items() if oldest < r.generation}
