"""Findings as zkbackup prints them: a sign, where, what, and what to do. Pure."""

from collections.abc import Sequence
from typing import Final

from logkeep.cli.terminal.boxes import BAD, FAIR
from logkeep.cli.terminal.text import printable
from logkeep.model.findings import Finding, Severity

_MOST: Final = 50
_SIGNS: Final = {Severity.DAMAGE: f"{BAD} damage ", Severity.WARNING: f"{FAIR} warning", Severity.NOTE: "   note   "}


def finding_lines(findings: Sequence[Finding]) -> list[str]:
    """The gravest first; nothing when there are none."""
    order = (Severity.DAMAGE, Severity.WARNING, Severity.NOTE)
    ordered = sorted(findings, key=lambda finding: order.index(finding.severity))
    lines = [line for finding in ordered[:_MOST] for line in _lines(finding)]
    more = [f"  ... and {len(ordered) - _MOST} more; --format=json has all"] if len(ordered) > _MOST else []
    return ["", "Findings:", *lines, *more] if lines else []


def _lines(finding: Finding) -> list[str]:
    said = [f"  {_SIGNS[finding.severity]} {printable(finding.where)}: {printable(finding.what)}"]
    return said + ([f"              try: {printable(finding.remedy)}"] if finding.remedy else [])
