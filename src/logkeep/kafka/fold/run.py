"""Folds the compacted logs of a source, without the cluster.

lease → kept backups and their rows → plan (pure) → tasks, one per log → for each log: the proof, and one `replace`
commit. Interrupted anywhere, every backup is read from the old objects or from the new ones. What was written and is
not committed is garbage, which `prune` collects like the old objects.
"""

import secrets
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from logkeep.errors import StoreError
from logkeep.kafka.fold.fold_task import fold_log
from logkeep.kafka.fold.plan import (
    FoldOptions,
    FoldPlan,
    KeptBackup,
    LogToFold,
    SkippedLog,
    chosen_logs,
    holders,
    plan_fold,
)
from logkeep.kafka.fold.units import FoldOutcome, FoldUnit, LogSum
from logkeep.kafka.record.stored_record import read_record, require_record
from logkeep.kafka.record.unproven_deletions import untimed
from logkeep.model.segments import LogName
from logkeep.model.time import Clock, TokenSource
from logkeep.model.work import EngineFor
from logkeep.repository.backups.content import PartReader, rows_of, served_parts
from logkeep.repository.backups.folds import folded_over
from logkeep.repository.backups.source import read_manifest
from logkeep.repository.chain import layout
from logkeep.repository.chain.actions import FoldProof, HonouredCut
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.fold import BackupEntry, Folded
from logkeep.repository.chain.format import FOLDED_LOGS, require_feature
from logkeep.repository.chain.lease import DEFAULT_TTL
from logkeep.repository.chain.write_session import Writing, writing
from logkeep.repository.parts import dense_logs
from logkeep.repository.upkeep.replace import ServedRows, fold_rows, served_rows

_PARALLEL = 8
_PROOF = (
    "the latest record of each key at every kept cut, from the old objects and from the new ones as read back from the "
    "store: equal digests"
)


@dataclass(frozen=True)
class FoldedResult:
    """The result for one log."""

    log: LogName
    outcome: FoldOutcome | None = None
    """What the task of the log returned; None if the log was not read."""
    planned: LogToFold | None = None
    committed: bool = False
    reason: str = ""
    """Why it was not folded."""
    problem: str = ""
    """What is damaged, or wrong with the new objects."""
    where: str = ""


@dataclass(frozen=True)
class PreparedFold:
    """The plan of a fold, for the chain as it was read."""

    generation: int
    head: str
    plan: FoldPlan
    kept: Sequence[KeptBackup]
    served: ServedRows

    def fits(self, folded: Folded) -> bool:
        """Whether nothing was committed since."""
        return (self.generation, self.head) == (folded.generation, folded.head)

    def foreseen(self) -> list[FoldedResult]:
        """The logs that a run would read, and those that it skips."""
        planned = [FoldedResult(each.log, planned=each) for each in self.plan.logs]
        return sorted([*planned, *_skipped(self.plan.skipped)], key=lambda each: each.log)


@dataclass(frozen=True)
class LogFolding:
    """Folds the logs of one source; everything that this needs besides options."""

    place: SourceRef
    clock: Clock
    tokens: TokenSource
    lease_ttl: timedelta = DEFAULT_TTL

    def prepare(self, options: FoldOptions) -> PreparedFold:
        """Plan a run. Writes nothing."""
        return self._plan(read_chain(self.place), options)

    def run(
        self, options: FoldOptions, engine_for: EngineFor, prepared: PreparedFold | None = None
    ) -> list[FoldedResult]:
        """Fold. Raises Locked if another run works on the source, and Damaged if a backup cannot be read.

        `prepared`: by these options. If a backup was committed since, the run plans again.
        """
        with writing(self.place, "fold", self.clock, self.tokens, self.lease_ttl) as session:
            if prepared is None or not prepared.fits(session.folded):
                prepared = self._plan(session.folded, options)
            plan, results = prepared.plan, _skipped(prepared.plan.skipped)
            if plan.logs:
                require_feature(self.place.store, FOLDED_LOGS)
                units = [self._unit(each) for each in plan.logs]
                engine = engine_for(sum(unit.size_bytes for unit in units))
                outcomes = engine.map(fold_log, units, FoldOutcome, label="fold", weight=lambda u: u.size_bytes)
                results += _Commits(session, prepared.served, prepared.kept).all(plan.logs, outcomes)
        return sorted(results, key=lambda each: each.log)

    def _plan(self, folded: Folded, options: FoldOptions) -> PreparedFold:
        kept = read_kept(self.place, folded)
        chosen, skipped = chosen_logs(kept, options)
        served = served_rows(self.place, folded)
        plan = plan_fold(kept, folded, served.needed_by_log(chosen), chosen, options)
        whole = FoldPlan(plan.logs, (*skipped, *plan.skipped))
        return PreparedFold(folded.generation, folded.head, whole, kept, served)

    def _unit(self, each: LogToFold) -> FoldUnit:
        return FoldUnit(
            self.place,
            each.log,
            each.rows,
            each.barriers,
            each.buried,
            each.young_ms,
            each.tombstones,
            each.proven,
            tuple(secrets.randbits(63) for _ in range(6)),
        )


def read_kept(place: SourceRef, folded: Folded) -> list[KeptBackup]:
    """All backups with their records. Raises Damaged: what a fold must honour would not be known."""
    reader = PartReader(place)

    def read(entry: BackupEntry) -> KeptBackup:
        manifest = read_manifest(place, entry)
        record = require_record(read_record(place, manifest), place, entry)
        dense = dense_logs(rows_of(reader, manifest, served_parts(manifest, folded))) if untimed(record) else ()
        return KeptBackup(manifest, record, dense)

    with ThreadPoolExecutor(_PARALLEL) as pool:
        return list(pool.map(read, folded.completed))


def _skipped(some: Sequence[SkippedLog]) -> list[FoldedResult]:
    return [FoldedResult(each.log, reason=each.reason) for each in some]


class _Commits:
    """One commit for each log whose proof is whole."""

    def __init__(self, session: Writing, served: ServedRows, kept: Sequence[KeptBackup]) -> None:
        self._session, self._served, self._kept = session, served, kept
        self._ids = [entry.id for entry in session.folded.completed]

    def all(self, planned: Sequence[LogToFold], outcomes: Sequence[FoldOutcome]) -> list[FoldedResult]:
        return [self._one(each, outcome) for each, outcome in zip(planned, outcomes, strict=True)]

    def _one(self, planned: LogToFold, outcome: FoldOutcome) -> FoldedResult:
        if outcome.problem:
            return FoldedResult(planned.log, outcome, planned, problem=outcome.problem, where=outcome.where)
        if outcome.skipped or outcome.before is None or outcome.after is None:
            reason = outcome.skipped or "every record is needed by a kept backup"
            return FoldedResult(planned.log, outcome, planned, reason=reason)
        wrong = self._wrong(planned, outcome.before, outcome.after)
        if wrong:
            self._discard(outcome)
            where = layout.log_root(self._session.place.source, planned.log)
            return FoldedResult(planned.log, outcome, planned, problem=wrong, where=where)
        proof = _proof(
            planned, outcome, (outcome.before, outcome.after), self._session.folded.last_id, self._over(planned)
        )
        self._served = fold_rows(self._session, self._served, dict(outcome.replaced), _PROOF, proof)
        return FoldedResult(planned.log, outcome, planned, committed=True)

    def _wrong(self, planned: LogToFold, before: LogSum, after: LogSum) -> str:
        """What the proof lacks; empty if it is complete. The cuts are read from the backups again."""
        cuts = {(b.id, span.start, span.end) for b, span in holders(self._kept).get(planned.log, ())}
        honoured = {tuple(cut) for cut in planned.barriers.cuts}
        ids = [entry.id for entry in self._session.folded.completed]
        if cuts != honoured or ids != self._ids or {each[0] for each in before.latest} != {cut[0] for cut in cuts}:
            return "the kept backups are not those that the fold honoured: nothing was replaced"
        if before.latest != after.latest:
            there = {number: text for number, _, text in after.latest}
            first = next(number for number, _, text in before.latest if there.get(number) != text)
            return f"the new objects do not have the latest records of backup {first}: nothing was replaced"
        return ""

    def _over(self, planned: LogToFold) -> set[int]:
        """Backups that an earlier fold of the log did not honour: records that only they needed are gone."""
        folded = self._session.folded
        return {
            kept.id
            for kept in self._kept
            if any(fold.log == planned.log for fold in folded_over(folded, kept.id, kept.manifest.cut))
        }

    def _discard(self, outcome: FoldOutcome) -> None:
        """Delete the new objects. What cannot be deleted is garbage, which `prune` collects."""
        place = self._session.place
        for _, row in outcome.replaced:
            with suppress(StoreError):
                if row.has_object:
                    place.store.delete(layout.segment(place.source, row))
                    place.store.delete(layout.index_of(place.source, row.log, row.first, row.token))


def _proof(
    planned: LogToFold, outcome: FoldOutcome, sums: tuple[LogSum, LogSum], last_id: int, over: Collection[int]
) -> FoldProof:
    before, after = sums
    latest: Mapping[int, tuple[int, str]] = {number: (records, text) for number, records, text in after.latest}
    return FoldProof(
        log=planned.log,
        start=outcome.start,
        end=outcome.end,
        last_id=last_id,
        cuts=tuple(
            HonouredCut(cut.backup, cut.start, cut.end, *latest[cut.backup])
            for cut in planned.barriers.cuts
            if cut.backup not in over
        ),
        dropped_tombstones=planned.tombstones is not None,
        dense=planned.dense,
        records_before=before.records,
        records_after=after.records,
        stored_before=before.stored_bytes,
        stored_after=after.stored_bytes,
        digest_before=before.digest,
        digest_after=after.digest,
    )
