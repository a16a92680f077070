"""The verdict of a verification, kept with the backup: what `list`, `info` and `prune` go by."""

import logging
import os
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.model.redaction import redact
from logkeep.model.time import rfc3339
from logkeep.zookeeper.bundle import layout
from logkeep.zookeeper.bundle.contents import damaged_at_source
from logkeep.zookeeper.bundle.rewriting import document_of, replace_document
from logkeep.zookeeper.bundle.view import BundleView
from logkeep.zookeeper.judging import Standing
from logkeep.zookeeper.score import Condition
from logkeep.zookeeper.verify import Verified

_log = logging.getLogger(__name__)


class Verdict(Protocol):
    """What is known of a backup once it was verified."""

    @property
    def verified(self) -> Verified: ...

    @property
    def repaired_files(self) -> int: ...

    @property
    def given_up(self) -> int: ...

    @property
    def damaged_files(self) -> int: ...

    @property
    def unrecoverable_files(self) -> int: ...

    @property
    def restorable(self) -> bool: ...

    @property
    def condition(self) -> Condition: ...

    @property
    def unproven_end(self) -> bool: ...

    @property
    def score(self) -> int: ...

    @property
    def standing(self) -> Standing | None: ...


def store_verdict(view: BundleView, verdict: Verdict, now: datetime, *, unsaid_by: str, keep: bool = False) -> None:
    """Replace what the document says of its validation, unless that is to be kept, and add to the log; a read-only
    bundle stays as it is."""
    try:
        if not keep:
            told = validation(view, verdict, now) | ({"unsaid_by": unsaid_by} if unsaid_by else {})
            replace_document(view.path, {**document_of(view.path), "validation": told})
        _append(view.path / layout.LOGS / layout.VERIFY_LOG, "".join(_lines(verdict, now)))
    except OSError as error:
        why = (error.strerror or "unknown reason").lower()
        _log.warning("the verdict cannot be stored with the backup: %s", why, extra={"backup": view.name})


def validation(view: BundleView, verdict: Verdict, now: datetime) -> dict[str, Any]:
    """The fields of the design, and what lists need. A look at names and sizes alone validates nothing. Files that were
    damaged when the backup met them count too: what is kept of them is whole, and not all of it."""
    verified = verdict.verified
    broken, mended = damaged_at_source(view.info.findings)
    kept = len(view.snapshots) + len(view.logs)
    return {
        "enabled": verified.reads_data,
        "total_files": kept + verdict.given_up,
        "valid_files": max(kept - verified.damaged_files, 0),
        "corrupted_files": verdict.damaged_files + broken + mended,
        "repaired_files": verdict.repaired_files,
        "unrecoverable_files": verdict.unrecoverable_files + broken,
        "status": verdict.condition.value,
        "quality_score": verdict.score,
        "restorable": verdict.restorable,
        "old_hole": verified.old_hole,
        "unproven_end": verdict.unproven_end,
        "level": verified.level.value,
        "verified_at": rfc3339(now),
        "transactions": verified.transactions,
        "digests_compared": verified.digests_compared,
        "end_zxid": None if verified.end is None else hex_zxid(verified.end),
    }


def _lines(verdict: Verdict, now: datetime) -> list[str]:
    when = rfc3339(now)
    level = verdict.verified.level
    head = f"{when} verified at level {level}: {verdict.condition}, quality {verdict.score}/100\n"
    found = [seen.finding for seen in verdict.verified.seen]
    return [head, *(redact(f"{when} {f.severity} {f.code}: {f.where}: {f.what}\n") for f in found)]


def _append(path: Path, text: str) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "a", encoding="utf-8") as file:
        file.write(text)
