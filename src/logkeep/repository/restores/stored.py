"""One restore whose plan is stored: how it ended goes into a receipt, or into the note that it was aborted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from logkeep.model.findings import Finding
from logkeep.model.ids import RestoreId
from logkeep.model.time import Clock, TokenSource, rfc3339
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.owner import this_process
from logkeep.repository.restores import (
    FIRST,
    ReceiptDocument,
    RestorePlanDocument,
    RestoreVerdict,
    put_aborted,
    put_receipt,
)


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

    def given_up(self, reason: str) -> None:
        put_aborted(self.state, self.plan, reason, self.clock, self.tokens)
