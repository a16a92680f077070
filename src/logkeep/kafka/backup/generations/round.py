"""Catch-ups in one run, under its lease: begin and end them, find those that become active, copy a share of the next.

Nothing here deletes. What an ended catch-up copied is garbage once the chain has its end; what a generation replaced
stays as long as a kept backup has it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from logkeep.errors import BackupFailed, Damaged, Interrupted, LogkeepError
from logkeep.kafka.backup.assemble import changed_logs, deleted_logs, earlier_results, refuse_failures
from logkeep.kafka.backup.continuity.history_check import BrokenLog
from logkeep.kafka.backup.facts import Facts
from logkeep.kafka.backup.generations.plan import (
    CaughtUp,
    GenerationRule,
    Reached,
    compacted_now,
    covered_by,
    due_topics,
    ended_catch_ups,
    left_to_copy,
    new_bytes,
    new_catch_up,
    one_share,
    planned_bytes,
    ready_to_switch,
    unknown_starts,
    with_retention,
)
from logkeep.kafka.backup.plan import Plan
from logkeep.kafka.backup.units import CopyResult
from logkeep.kafka.logs.batch_check import check_logs
from logkeep.kafka.record.deletion_times import cleanup_rule
from logkeep.model.findings import Finding, Severity
from logkeep.model.segments import Collection as Kind
from logkeep.model.segments import LogName, Segment
from logkeep.model.time import rfc3339
from logkeep.model.work import Engine, EngineFor
from logkeep.repository.backups.backup import lost_segments
from logkeep.repository.backups.catch_ups import (
    CatchUpReceipt,
    CatchUpStep,
    catch_up_receipts,
    put_catch_up_receipt,
    verified_units,
)
from logkeep.repository.backups.source import read_manifest
from logkeep.repository.chain import layout
from logkeep.repository.chain.actions import EndedCatchUp, GenerationsAction
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.fold import CatchUp, Folded
from logkeep.repository.chain.format import GENERATIONS, require_feature
from logkeep.repository.chain.write_session import Writing
from logkeep.repository.parts import Expected
from logkeep.repository.verify.checks import HashResult, hash_units


@dataclass(frozen=True)
class CopiedShare:
    """What a run copied of a catch-up."""

    what: str | None = None
    findings: tuple[Finding, ...] = ()


CopyShare = Callable[[Plan, str, Engine], Sequence[CopyResult]]
"""Copies the units of a plan as a part of the catch-up with this token."""


@dataclass(frozen=True)
class GenerationRound:
    session: Writing
    rule: GenerationRule
    known: dict[str, CatchUpReceipt] = field(default_factory=dict)
    """Receipts that were read before: a run of many rounds reads each once."""

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do, so that nothing has to be read."""
        return self.rule.length is None and not self.session.folded.catch_ups

    def begin(self, facts: Facts, reached: Reached, broken: Iterable[BrokenLog]) -> tuple[CaughtUp, ...]:
        """End catch-ups that have become useless, begin those that are due; returns those that become active now."""
        if self.idle:
            return ()
        ended = ended_catch_ups(self.session.folded.catch_ups or (), facts, reached, broken)
        self._commit(GenerationsAction(ended=tuple(ended)))
        if self.rule.length is not None:
            self._begin_due(facts, reached)
        here = [self._progress(each) for each in self._selected(facts)]
        left = [(each, self._extra_bytes(each, facts, reached)) for each in here]
        ready = ready_to_switch(left, self.rule.share_bytes)
        lost = {each.catch_up.token: why for each in ready if (why := self._lost(each))}
        # It can never become active, and a backup that tried to would fail every time.
        self._commit(GenerationsAction(ended=tuple(EndedCatchUp(token, why) for token, why in lost.items())))
        return tuple(each for each in ready if each.catch_up.token not in lost)

    def _lost(self, caught: CaughtUp) -> str:
        segments = [s for each in caught.results for s in each.segments]
        return next(lost_segments(self.session.place, segments), "")

    def _extra_bytes(self, caught: CaughtUp, facts: Facts, reached: Reached) -> int:
        left = left_to_copy(caught, facts, self.rule.share_bytes).size_bytes
        return max(left - new_bytes(caught.catch_up.topic, facts, reached), 0)

    def _begin_due(self, facts: Facts, reached: Reached) -> None:
        assert self.rule.length is not None  # noqa: S101  the caller checks it
        session, topics = self.session, compacted_now(facts)
        folded, now = session.folded, session.clock()
        if unknown_starts(folded, topics, (), rfc3339(now)):
            starts = unknown_starts(folded, topics, oldest_logs(session.place, folded), rfc3339(now))
            self._commit(GenerationsAction(starts=tuple(starts)))
        due = due_topics(session.folded, topics, reached, self.rule.length, now)
        logs = [LogName(Kind.TOPICS, log.topic, r.history, log.partition) for log, r in reached.items()]
        reason = f"the active generation is older than {self.rule.length.days} days"
        begun = [new_catch_up(session.folded, name, logs, session.tokens(), reason) for name in due]
        self._commit(GenerationsAction(begun=tuple(begun)))

    def _commit(self, action: GenerationsAction) -> None:
        commit_generations(self.session, action)

    def _selected(self, facts: Facts) -> list[CatchUp]:
        names = {t.name for t in facts.topics}
        return [c for c in self.session.folded.catch_ups or () if c.topic in names]

    def _progress(self, catch_up: CatchUp) -> CaughtUp:
        verified = verified_units(self._receipts(catch_up))
        return CaughtUp(catch_up, tuple(earlier_results(verified.values())))

    def share(
        self, facts: Facts, reached: Reached, done: Plan, copy: CopyShare, engine_for: EngineFor
    ) -> "CopiedShare":
        """After the backup, which copied the plan `done`: end catch-ups of logs that lost their end meanwhile, copy and
        read back a part of the first other one. What fails is a finding; the backup counts."""
        if self.idle:
            return CopiedShare()
        ended = ended_catch_ups(self.session.folded.catch_ups or (), facts, reached, ())
        self._commit(GenerationsAction(ended=tuple(ended)))
        for catch_up in self._selected(facts)[:1]:
            try:
                share_bytes = self.rule.share_bytes + planned_bytes(catch_up.topic, done)
                return self._share(catch_up, facts, share_bytes, copy, engine_for)
            except LogkeepError as error:
                if isinstance(error, Interrupted):
                    raise
                return CopiedShare(findings=(_stopped(catch_up, error),))
        return CopiedShare()

    def _share(
        self, catch_up: CatchUp, facts: Facts, share_bytes: int, copy: CopyShare, engine_for: EngineFor
    ) -> "CopiedShare":
        self._verify(catch_up, facts, engine_for)
        caught = self._progress(catch_up)
        plan = one_share(left_to_copy(caught, facts, share_bytes), share_bytes)
        if not plan.units:
            return CopiedShare()
        self.session.lease.confirm()
        results = list(copy(plan, catch_up.token, engine_for(plan.size_bytes)))
        refuse_failures(results)
        changed = [*changed_logs(results), *deleted_logs(results)]
        if changed:
            why = f"{changed[0].log} is not the log any more that was copied ({changed[0].cause})"
            self._commit(GenerationsAction(ended=(EndedCatchUp(catch_up.token, why),)))
            return CopiedShare(f"{catch_up.topic}: ended, because {why}")
        self._verify(catch_up, facts, engine_for)
        after = left_to_copy(self._progress(catch_up), facts, share_bytes)
        copied = sum(s.stored_bytes for each in results for s in each.segments)
        return CopiedShare(
            f"{catch_up.topic}, generation {catch_up.number}: {copied:,} bytes copied, about {after.size_bytes:,} left"
        )

    def _verify(self, catch_up: CatchUp, facts: Facts, engine_for: EngineFor) -> None:
        """Read back what was copied and not verified yet; what is damaged is copied again by the next share.

        A unit that was copied again has two receipts, and either may be the damaged one.
        """
        place, session = self.session.place, self.session
        receipts = self._receipts(catch_up)
        configs = facts.configs[catch_up.topic]
        retention_ms = cleanup_rule(configs.own, configs.inherited).retention_ms
        known = earlier_results(verified_units(receipts).values())
        for each in (r for r in receipts if r.step is CatchUpStep.COPIED):
            (result,) = earlier_results([each]) or (None,)
            if result is None or covered_by(known, result):
                continue
            engine = engine_for(sum(s.stored_bytes for s in each.segments))
            if not damaged_segments(place, each.segments, engine):
                note = msgspec.json.encode(with_retention(result, retention_ms).ranges).decode()
                verified = msgspec.structs.replace(each, step=CatchUpStep.VERIFIED, run=session.run, note=note)
                put_catch_up_receipt(place, verified, session.tokens())
                known.append(result)

    def _receipts(self, catch_up: CatchUp) -> list[CatchUpReceipt]:
        return list(catch_up_receipts(self.session.place, catch_up, known=self.known))


def oldest_logs(place: SourceRef, folded: Folded) -> list[LogName]:
    """The logs of the oldest kept backup."""
    try:
        return [c.log for entry in folded.completed[:1] for c in read_manifest(place, entry).cut]
    except Damaged:
        return []  # the age of the copies is then counted from now on


def commit_generations(session: Writing, action: GenerationsAction) -> None:
    """Commit the action, unless it is empty. The feature is required first: an earlier release must not collect what
    is copied."""
    if action != GenerationsAction():
        require_feature(session.place.store, GENERATIONS)
        session.commit(action)


def damaged_segments(place: SourceRef, segments: Iterable[Segment], engine: Engine) -> list[Finding]:
    """Read objects back from the store: their hashes, every batch and its CRC-32C."""
    wanted = [
        Expected(
            layout.segment(place.source, s), s.stored_bytes, s.sha256, s.codec, s.plain_bytes, s.plain_sha256
        )
        for s in segments
        if s.has_object
    ]  # fmt: skip
    units = list(hash_units(place.store, wanted))
    results = engine.map(check_logs, units, HashResult, label="read back", weight=lambda u: u.bytes)
    return [finding for each in results for finding in each.findings]


def refuse_damaged(place: SourceRef, segments: Iterable[Segment], ready: Iterable[CaughtUp], engine: Engine) -> None:
    """Raise BackupFailed if what was copied of new generations cannot be read back: the old ones stay active."""
    some = list(ready)
    topics, proven = {each.catch_up.topic for each in some}, frozenset[str]().union(*(each.tokens for each in some))
    wanted = [s for s in segments if s.log.name in topics and s.token not in proven]
    for found in damaged_segments(place, wanted, engine):
        raise BackupFailed(
            f"the new generation cannot be read back: {found.what}",
            subject=found.where,
            remedy="run again: the damaged object is copied again, and the old generation is active until then",
        )


def _stopped(catch_up: CatchUp, error: LogkeepError) -> Finding:
    return Finding(
        code="catch-up-stopped",
        severity=Severity.WARNING,
        where=catch_up.topic,
        what=f"generation {catch_up.number} was not continued: {error}",
        remedy="nothing: the backup is complete, and the next run continues the copy",
    )
