"""One restore whose plan is stored: begin it, open it again, resume or abort it, store its receipts.

Every kind of restore is stored through this class: Kafka topics, groups, offline restores, ZooKeeper directories and
subtrees. The kinds differ in the body of the plan and in what they add to a receipt.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

import msgspec

from logkeep.errors import Damaged, Locked, LogkeepError, ObjectMissing, UnknownBackup, UsageError
from logkeep.model.findings import Finding, error_finding
from logkeep.model.ids import RestoreId
from logkeep.model.time import Clock, TokenSource, rfc3339
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.owner import is_alive, this_process
from logkeep.repository.restores import (
    FIRST,
    NewRestore,
    ReceiptDocument,
    RestorePlanDocument,
    RestoreVerdict,
    begin_restore,
    newest_receipt,
    note_resumed,
    owner_of,
    owners_of,
    plan_body,
    put_aborted,
    put_receipt,
    read_aborted,
    read_plan,
    read_receipts,
)

BodyT = TypeVar("BodyT")
_WAIT = "wait until it ends, or stop it"


@dataclass(frozen=True)
class StoredRestore:
    """A restore whose plan is stored."""

    state: SourceRef
    """The source whose directory holds its documents."""
    id: RestoreId
    plan: RestorePlanDocument
    clock: Clock
    tokens: TokenSource
    before_s: float = 0.0
    """The seconds for reading and replaying before the plan could be stored: part of the recovery time."""

    @classmethod
    def begin(
        cls, state: SourceRef, new: NewRestore, clock: Clock, tokens: TokenSource, before_s: float = 0.0
    ) -> "StoredRestore":
        """Store the plan, before anything is changed. Raises StoreDenied where nothing may be written."""
        restore_id = begin_restore(state, new, clock, tokens)
        return cls(state, restore_id, read_plan(state, restore_id), clock, tokens, before_s)

    @classmethod
    def open(
        cls,
        state: SourceRef,
        restore_id: RestoreId,
        kind: str,
        clock: Clock,
        tokens: TokenSource,
        *,
        aborted_too: bool = False,
    ) -> "StoredRestore":
        """The restore that the user named. Raises UnknownBackup, and UsageError when it cannot be resumed.

        One that was aborted is opened only with `aborted_too`: to abort it again.
        """
        try:
            plan = read_plan(state, restore_id)
        except ObjectMissing:
            raise UnknownBackup(
                f"no restore has the id {restore_id}",
                subject=state.source,
                remedy="`logkeep receipts list` lists the restores",
            ) from None
        if plan.kind != kind:
            raise UsageError(
                f"this is a restore of the kind {plan.kind}, not {kind}",
                subject=str(restore_id),
                remedy="`logkeep receipts list` lists the restores",
            )
        if not aborted_too and read_aborted(state, restore_id) is not None:
            raise UsageError(
                "this restore was aborted and cannot be resumed", subject=str(restore_id), remedy="begin a new restore"
            )
        return cls(state, restore_id, plan, clock, tokens)

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

    @property
    def started(self) -> datetime:
        return datetime.fromisoformat(self.plan.started)

    def resume(self) -> int:
        """Store that this process works on the restore now; returns how often it was resumed, this time included.

        Raises Locked while another process on this host works on it.
        """
        owner = owner_of(self.state, self.plan)
        if is_alive(owner, this_process(self.tokens())):
            raise Locked(f"{owner} is working on this restore", subject=str(self.id), remedy=_WAIT)
        return note_resumed(self.state, self.id, self.clock, self.tokens).number

    def refuse_beside_another_run(self) -> None:
        """Refuse to report a failure that another run may have caused: two that resume at the same time both continue.

        Raises Locked if another run has restored all records, or another process on this host works on the restore.
        """
        if any(receipt.records_there for receipt in read_receipts(self.state, self.id)):
            raise Locked("another run has finished this restore", subject=str(self.id))
        here = this_process(self.tokens())
        other = next((owner for owner in owners_of(self.state, self.plan) if is_alive(owner, here)), None)
        if other is not None:
            raise Locked(f"{other} is working on this restore", subject=str(self.id), remedy=_WAIT)

    def draft(
        self,
        verdict: RestoreVerdict,
        findings: Sequence[Finding] = (),
        facts: Mapping[str, str] | None = None,
        run: str = "",
    ) -> ReceiptDocument:
        """A receipt as of now that is not stored yet. `run`: the token of this process, if it has one already."""
        now = self.clock()
        return ReceiptDocument(
            repository=self.state.repository,
            source=self.state.source,
            restore=self.id,
            number=FIRST,
            backup=self.plan.backup,
            drill=self.plan.drill,
            verdict=verdict,
            records_there=verdict in (RestoreVerdict.PROVEN, RestoreVerdict.UNPROVEN),
            owner=this_process(run or self.tokens()),
            started=self.plan.started,
            finished=rfc3339(now),
            duration_s=max((now - self.started).total_seconds(), 0.0) + self.before_s,
            target=self.plan.target,
            findings=tuple(findings),
            facts=dict(facts) if facts else msgspec.UNSET,
        )

    def put(self, receipt: ReceiptDocument) -> ReceiptDocument:
        """Store a receipt under the next number. Returns it with that number."""
        return put_receipt(self.state, receipt)

    def ended(
        self, verdict: RestoreVerdict, findings: Sequence[Finding] = (), facts: Mapping[str, str] | None = None
    ) -> ReceiptDocument:
        """Store how it ended."""
        return self.put(self.draft(verdict, findings, facts))

    def failed(
        self,
        error: LogkeepError,
        where: str,
        verdict: RestoreVerdict = RestoreVerdict.FAILED,
        findings: Sequence[Finding] = (),
        facts: Mapping[str, str] | None = None,
    ) -> ReceiptDocument:
        """Store which error ended it. `where`: what the error is about, if it does not name its subject."""
        return self.ended(verdict, (error_finding(error, where), *findings), facts)

    def abort(self, reason: str) -> None:
        """Store that it was aborted, and why. The first reason stays."""
        put_aborted(self.state, self.plan, reason, self.clock, self.tokens)
