"""Receipts of a Kafka restore in the making. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from logkeep.kafka.restore.facts.units import LogResult
from logkeep.model.time import rfc3339
from logkeep.repository.chain import SourceRef
from logkeep.repository.owner import this_process
from logkeep.repository.restores import FIRST, ReceiptDocument, RestorePlanDocument, RestoreVerdict


@dataclass(frozen=True)
class RunStart:
    """When a run began, and which one it is."""

    moment: datetime
    run: str


def blank_receipt(
    state: SourceRef, document: RestorePlanDocument, began: RunStart, now: datetime, results: Sequence[LogResult]
) -> ReceiptDocument:
    """What is known before it is known how all ends: until then it has failed."""
    seconds = max((now - began.moment).total_seconds(), 1e-3)
    records, sent = sum(r.records for r in results), sum(r.sent_bytes for r in results)
    return ReceiptDocument(
        repository=state.repository,
        source=state.source,
        restore=document.restore,
        number=FIRST,
        backup=document.backup,
        drill=document.drill,
        verdict=RestoreVerdict.FAILED,
        owner=this_process(began.run),
        started=rfc3339(began.moment),
        finished=rfc3339(now),
        duration_s=seconds,
        target=document.target,
        rates={"records_per_s": round(records / seconds, 1), "sent_bytes_per_s": round(sent / seconds, 1)},
    )


def ended(receipt: ReceiptDocument, began: RunStart, now: datetime) -> ReceiptDocument:
    """The receipt with the end of this run. A run that only finished another one's work begins where that began."""
    first = min(datetime.fromisoformat(receipt.started), began.moment)
    seconds = max((now - first).total_seconds(), 0.0)
    return msgspec.structs.replace(receipt, finished=rfc3339(now), duration_s=seconds)
