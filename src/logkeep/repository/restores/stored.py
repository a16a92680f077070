"""One restore whose plan is stored: begin it, find it again, store how it ended or that it was aborted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

import msgspec

from logkeep.errors import Damaged, LogkeepError, ObjectMissing
from logkeep.model.findings import Finding, Severity
from logkeep.model.ids import RestoreId
from logkeep.model.time import Clock, TokenSource, rfc3339
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.owner import this_process
from logkeep.repository.restores import (
    FIRST,
    NewRestore,
    ReceiptDocument,
    RestorePlanDocument,
    RestoreVerdict,
    begin_restore,
    newest_receipt,
    plan_body,
    put_aborted,
    put_receipt,
    read_plan,
)

BodyT = TypeVar("BodyT")


@dataclass(frozen=True)
class StoredRestore:
    """A restore whose plan is stored."""

    state: SourceRef
    """Where its documents go."""
    id: RestoreId
    plan: RestorePlanDocument
    clock: Clock
    tokens: TokenSource
    before_s: float = 0.0
    """Spent on reading and replaying, before the plan could be stored: part of the recovery time."""

    @classmethod
    def begin(
        cls, state: SourceRef, new: NewRestore, clock: Clock, tokens: TokenSource, before_s: float = 0.0
    ) -> "StoredRestore":
        """Store the plan, before anything is changed. Raises StoreDenied where nothing may be written."""
        restore_id = begin_restore(state, new, clock, tokens)
        return cls(state, restore_id, read_plan(state, restore_id), clock, tokens, before_s)

    @classmethod
    def find(
        cls, state: SourceRef, restore_id: RestoreId, body: type[BodyT], clock: Clock, tokens: TokenSource
    ) -> "tuple[StoredRestore, BodyT] | None":
        """The restore with this id and the body of its plan; None when no readable plan has such a body."""
        try:
            plan = read_plan(state, restore_id)
            return cls(state, restore_id, plan, clock, tokens), plan_body(plan, body)
        except (Damaged, ObjectMissing):
            return None

    def body(self, kind: type[BodyT]) -> BodyT:
        """The part of the plan that only this kind of restore has. Raises Damaged."""
        return plan_body(self.plan, kind)

    def receipt(self) -> ReceiptDocument | None:
        """The newest receipt; None while the restore has not ended."""
        return newest_receipt(self.state, self.id)

    def ended(
        self, verdict: RestoreVerdict, findings: Sequence[Finding] = (), facts: Mapping[str, str] | None = None
    ) -> ReceiptDocument:
        """Store how it ended."""
        now, began = self.clock(), datetime.fromisoformat(self.plan.started)
        receipt = ReceiptDocument(
            repository=self.state.repository,
            source=self.state.source,
            restore=self.id,
            number=FIRST,
            backup=self.plan.backup,
            drill=self.plan.drill,
            verdict=verdict,
            records_there=verdict in (RestoreVerdict.PROVEN, RestoreVerdict.UNPROVEN),
            owner=this_process(self.tokens()),
            started=self.plan.started,
            finished=rfc3339(now),
            duration_s=max((now - began).total_seconds(), 0.0) + self.before_s,
            target=self.plan.target,
            findings=tuple(findings),
            facts=dict(facts) if facts else msgspec.UNSET,
        )
        return put_receipt(self.state, receipt)

    def failed(
        self,
        error: LogkeepError,
        where: str,
        verdict: RestoreVerdict = RestoreVerdict.FAILED,
        findings: Sequence[Finding] = (),
        facts: Mapping[str, str] | None = None,
    ) -> ReceiptDocument:
        """Store which error ended it. `where`: what the error is about, if it does not name its subject."""
        finding = Finding(
            code=error.slug(),
            severity=Severity.DAMAGE,
            where=error.subject or where,
            what=error.what,
            remedy=error.remedy,
        )
        return self.ended(verdict, (finding, *findings), facts)

    def abort(self, reason: str) -> None:
        """Store that it was aborted, and why. The first reason stays."""
        put_aborted(self.state, self.plan, reason, self.clock, self.tokens)
