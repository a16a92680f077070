"""The verdict of a verification, stored in the backup's document: `list`, `info` and `prune` use it.

A quick check of names and sizes must not replace the finding of a broken checksum: otherwise a damaged backup would be
listed as valid, and `prune` would keep it and delete a good one. So a verdict stays until a verification at least as
deep, or a repair, replaces it. The worst verdict counts; a deeper one that is not as bad is stored beside it.
"""

import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.model.redaction import redact
from logkeep.model.time import rfc3339
from logkeep.repository.backups.verdicts import depth
from logkeep.zookeeper.bundle import layout
from logkeep.zookeeper.bundle.contents import damaged_at_source
from logkeep.zookeeper.bundle.info_file import document_of, replace_document
from logkeep.zookeeper.bundle.view import BundleView
from logkeep.zookeeper.model.condition import Condition
from logkeep.zookeeper.verify.run import Level
from logkeep.zookeeper.verify.verdict import DeeperVerdict, JudgedBackup

_log = logging.getLogger(__name__)
DEEPER: Final = "deeper"
"""Field of a stored verdict: another one, of a deeper verification that found less."""
_LEVELS: Final = frozenset(Level)


@dataclass(frozen=True)
class StoredVerdict:
    """`fields`: as they are stored."""

    level: str
    condition: Condition
    score: int
    fields: Mapping[str, Any]

    @property
    def as_deeper(self) -> DeeperVerdict:
        return DeeperVerdict(self.condition, self.score, self.level)


def stored_verdicts(validation: object) -> tuple[StoredVerdict, ...]:
    """The verdicts in a document; what cannot be read is ignored."""
    if not isinstance(validation, dict):
        return ()
    fields = {name: value for name, value in validation.items() if name != DEEPER}
    verdict = parse_verdict(fields)
    return (*([verdict] if verdict is not None else []), *stored_verdicts(validation.get(DEEPER)))


def parse_verdict(fields: Mapping[str, Any]) -> StoredVerdict | None:
    try:
        condition, score = Condition(str(fields.get("status"))), int(fields.get("quality_score", 0))
    except (ValueError, TypeError):
        return None
    if condition is Condition.UNVERIFIED:
        return None
    level = fields.get("level", Level.REPLAY.value)  # the default level of `verify`
    known = level if level in _LEVELS else Level.BOOT.value  # a level that a later verification can reach
    return StoredVerdict(known, condition, score, fields)


def choose_verdict(stored: Iterable[StoredVerdict], new: StoredVerdict) -> tuple[StoredVerdict, StoredVerdict | None]:
    """The verdict that counts from now on, and the deeper one that is stored beside it."""
    still_valid = [verdict for verdict in stored if depth(verdict.level) > depth(new.level)]
    counts = min([new, *still_valid], key=_badness)
    deeper = [verdict for verdict in still_valid if depth(verdict.level) > depth(counts.level)]
    return counts, min(deeper, key=_badness, default=None)


def _badness(verdict: StoredVerdict) -> tuple[bool, int, int]:
    """Of two verdicts that are equally bad the deeper one counts."""
    return verdict.condition is not Condition.DAMAGED, verdict.score, -depth(verdict.level)


def store_verdict(view: BundleView, verdict: JudgedBackup, now: datetime, *, replace: bool) -> DeeperVerdict | None:
    """Store the verdict that counts from now on, and add to the log; a read-only bundle stays as it is.

    Returns the verdict of an earlier, deeper verification where it is worse and still counts. `replace`: a repair
    changed the backup, so earlier verdicts no longer apply.
    """
    document = document_of(view.path)
    fields = validation(view, verdict, now)
    new = StoredVerdict(verdict.verified.level.value, verdict.condition, verdict.score, fields)
    stored = () if replace else stored_verdicts(document.get("validation"))
    counts, deeper = choose_verdict(stored, new)
    document["validation"] = {**counts.fields, **({DEEPER: deeper.fields} if deeper is not None else {})}
    try:
        replace_document(view.path, document)
        _append(view.path / layout.LOGS / layout.VERIFY_LOG, "".join(_lines(verdict, now)))
    except OSError as error:
        why = (error.strerror or "unknown reason").lower()
        _log.warning("the verdict cannot be stored with the backup: %s", why, extra={"backup": view.name})
    worse = counts.condition is not new.condition or counts.score < new.score
    return counts.as_deeper if counts is not new and worse else None


def validation(view: BundleView, verdict: JudgedBackup, now: datetime) -> dict[str, Any]:
    """The field `validation` of the document. A check of names and sizes alone does not count as enabled.

    Files that were already damaged in the source count too: what is archived of them is good, but not complete.
    """
    verified = verdict.verified
    broken, repaired = damaged_at_source(view.info.findings)
    kept = len(view.snapshots) + len(view.logs)
    return {
        "enabled": verified.reads_data,
        "total_files": kept + verdict.dropped,
        "valid_files": max(kept - verified.damaged_files, 0),
        "corrupted_files": verdict.damaged_files + broken + repaired,
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


def _lines(verdict: JudgedBackup, now: datetime) -> list[str]:
    when = rfc3339(now)
    level = verdict.verified.level
    head = f"{when} verified at level {level}: {verdict.condition}, quality {verdict.score}/100\n"
    found = [seen.finding for seen in verdict.verified.seen]
    return [head, *(redact(f"{when} {f.severity} {f.code}: {f.where}: {f.what}\n") for f in found)]


def _append(path: Path, text: str) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "a", encoding="utf-8") as file:
        file.write(text)
