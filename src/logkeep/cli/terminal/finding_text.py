"""Findings as lines of text, with what to do about them."""

from collections.abc import Sequence
from itertools import zip_longest

from logkeep.model.findings import Finding, Severity

INDENT = 8


def finding_texts(findings: Sequence[Finding]) -> list[str]:
    """A line for each, and what to do unless it is a note; once, where that is the same for several in a row."""
    lines = []
    for one, after in zip_longest(findings, findings[1:]):
        lines.append(f"{one.severity.upper():{INDENT}}{one.where}: {one.what}")
        last = after is None or (after.remedy, after.code) != (one.remedy, one.code)
        if one.remedy and one.severity is not Severity.NOTE and last:
            lines.append(f"{'':{INDENT}}try: {one.remedy}")
    return lines
