"""Findings of checks: what, where, how severe, and what to do about it."""

from enum import StrEnum

import msgspec

from logkeep.errors import LogkeepError


class Severity(StrEnum):
    """`damage` fails a verification; `warning` should be checked; `note` explains."""

    DAMAGE = "damage"
    WARNING = "warning"
    NOTE = "note"


class Finding(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Stored in manifests and verifications, printed, counted."""

    code: str
    """Stable and short, for scripts: `object-missing`, `hash-mismatch`, `gap`."""
    severity: Severity
    where: str
    """The object, log or backup it is about."""
    what: str
    remedy: str = ""


def warning(code: str, where: str, what: str, remedy: str = "") -> Finding:
    return Finding(code=code, severity=Severity.WARNING, where=where, what=what, remedy=remedy)


def note(code: str, where: str, what: str, remedy: str = "") -> Finding:
    return Finding(code=code, severity=Severity.NOTE, where=where, what=what, remedy=remedy)


DELETION_DOUBTS = frozenset({"deletions-unproven", "deletions-suspicious"})
"""Codes of findings about a backup whose objects are good, but which may bring deleted keys back."""


def worst(findings: list[Finding]) -> Severity | None:
    """The highest severity of the findings, or None if there are none."""
    order = (Severity.DAMAGE, Severity.WARNING, Severity.NOTE)
    return next((s for s in order if any(f.severity is s for f in findings)), None)


def error_finding(error: LogkeepError, where: str) -> Finding:
    """An error as a finding. `where`: what the error is about, if it does not name its subject."""
    return Finding(
        code=error.slug(),
        severity=Severity.DAMAGE,
        where=error.subject or where,
        what=error.what,
        remedy=error.remedy,
    )
