"""The verdict of a verification, kept with the backup: what `list`, `info` and `prune` go by."""

import logging
import os
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from logkeep.cli.zkbackup import standing
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.model.redaction import redact
from logkeep.model.time import rfc3339
from logkeep.zookeeper.bundle import layout
from logkeep.zookeeper.bundle.contents import damaged_at_source
from logkeep.zookeeper.bundle.info_file import document_of, replace_document
from logkeep.zookeeper.bundle.view import BundleView
from logkeep.zookeeper.model.condition import Condition
from logkeep.zookeeper.verify.run import VerifiedFiles
from logkeep.zookeeper.verify.verdict import DeeperVerdict

_log = logging.getLogger(__name__)


class BundleVerdict(Protocol):
    """What is known of a backup once it was verified."""

    @property
    def verified(self) -> VerifiedFiles: ...

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


def store_verdict(view: BundleView, verdict: BundleVerdict, now: datetime, *, replace: bool) -> DeeperVerdict | None:
    """Store what counts from now on, and add to the log; a read-only bundle stays as it is. What an earlier and deeper
    look found that this one cannot unsay, where that is worse. `replace`: earlier ones are of another backup than this.
    """
    document = document_of(view.path)
    fields = validation(view, verdict, now)
    new = standing.StoredVerdict(verdict.verified.level.value, verdict.condition, verdict.score, fields)
    stored = () if replace else standing.stored_verdicts(document.get("validation"))
    counts, deeper = standing.settled(stored, new)
    document["validation"] = {**counts.fields, **({standing.DEEPER: deeper.fields} if deeper is not None else {})}
    try:
        replace_document(view.path, document)
        _append(view.path / layout.LOGS / layout.VERIFY_LOG, "".join(_lines(verdict, now)))
    except OSError as error:
        why = (error.strerror or "unknown reason").lower()
        _log.warning("the verdict cannot be stored with the backup: %s", why, extra={"backup": view.name})
    worse = counts.condition is not new.condition or counts.score < new.score
    return counts.standing if counts is not new and worse else None


def validation(view: BundleView, verdict: BundleVerdict, now: datetime) -> dict[str, Any]:
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


def _lines(verdict: BundleVerdict, now: datetime) -> list[str]:
    when = rfc3339(now)
    level = verdict.verified.level
    head = f"{when} verified at level {level}: {verdict.condition}, quality {verdict.score}/100\n"
    found = [seen.finding for seen in verdict.verified.seen]
    return [head, *(redact(f"{when} {f.severity} {f.code}: {f.where}: {f.what}\n") for f in found)]


def _append(path: Path, text: str) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "a", encoding="utf-8") as file:
        file.write(text)
