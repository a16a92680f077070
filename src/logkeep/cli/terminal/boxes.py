"""Titles, framed tables, trees and findings, as zkbackup prints them. Pure: a `TerminalStyle` in, text out.

Every sign has an ASCII form, and a word beside it says the same.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from logkeep.cli.terminal.escaping import LONGEST_CELL, shown
from logkeep.cli.terminal.messages import Translation, message
from logkeep.cli.terminal.text import TerminalStyle, cell_width
from logkeep.model.findings import Finding, Severity
from logkeep.zookeeper.model.condition import Condition

GOOD: Final = "✅"
FAIR: Final = "⚠️"
BAD: Final = "❌"
SIGNS: Final = {
    Condition.VALID: GOOD,
    Condition.PARTIAL: FAIR,
    Condition.DAMAGED: BAD,
    Condition.UNVERIFIED: FAIR,
}
CONDITION_WORDS: Final = {
    Condition.VALID: message("valid"),
    Condition.PARTIAL: message("partial"),
    Condition.DAMAGED: message("damaged"),
    Condition.UNVERIFIED: message("unverified"),
}
_TITLE_WIDTH: Final = 60
_ASCII_FORMS: Final = {
    GOOD: "[ok]",
    FAIR: "[!]",
    BAD: "[x]",
    "⏭️": "[-]",
    **dict.fromkeys("╔╗╚╝┌┬┐├┼┤└┴┘", "+"),
    **dict.fromkeys("═─", "-"),
    **dict.fromkeys("║│", "|"),
}


_SENTENCES: Final = (GOOD, FAIR, BAD, "[ok]", "[!]", "[x]", "note ", "try: ", "建议: ", "Next: ", "- ", "If ")
"""Beginnings of lines that are sentences, not commands, and may be wrapped."""


def fit_terminal(lines: list[str], look: TerminalStyle) -> str:
    """The lines, each escaped, in characters that this terminal can show, with long sentences wrapped.

    A newline in a line comes from a name or message in it, and is escaped too.
    """
    return "\n".join(_wrapped(_fitted(line, look), look) for line in lines)


def _fitted(line: str, look: TerminalStyle) -> str:
    line = shown(line)
    if not look.unicode:
        line = line.replace("├─", "|-").replace("└─", "`-")
        for sign, ascii_form in _ASCII_FORMS.items():
            line = line.replace(sign, ascii_form)
    return look.text(line)


def _wrapped(line: str, look: TerminalStyle) -> str:
    """Commands, paths and frames are not wrapped, so that they can be copied."""
    content = line.lstrip()
    if look.width is None or not content.startswith(_SENTENCES):
        return line
    narrower = replace(look, width=look.width - 1)  # a sign takes two columns and counts as one letter
    return narrower.prose(line, indent=len(line) - len(content) + 3)


def title(text: str) -> list[str]:
    rule = "═" * _TITLE_WIDTH
    free = max(_TITLE_WIDTH - cell_width(text), 0)
    return [f"╔{rule}╗", f"║{' ' * (free // 2)}{text}{' ' * (free - free // 2)}║", f"╚{rule}╝", ""]


def branches(lines: Sequence[str]) -> list[str]:
    """The lines as branches of one tree."""
    return [f"  {'├─' if place < len(lines) else '└─'} {line}" for place, line in enumerate(lines, 1)]


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows with their cells aligned, without a frame."""
    safe = [[shown(cell, LONGEST_CELL) for cell in row] for row in rows]
    widths = [max(cell_width(row[i]) for row in safe) for i in range(len(safe[0]))] if safe else []
    return ["  ".join(_padded(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in safe]


def framed(headers: Sequence[str], rows: Sequence[Sequence[str]], look: TerminalStyle) -> str:
    """A table with lines around its cells; a plain table where the terminal is too narrow."""
    cells = [[_fitted(shown(cell, LONGEST_CELL), look) for cell in row] for row in (headers, *rows)]
    widths = [max(cell_width(row[i]) for row in cells) for i in range(len(headers))]
    if look.width is not None and sum(widths) + 3 * len(widths) + 1 > look.width:
        return look.table(headers, cells[1:], right=headers[0])
    lines = ["│ " + " │ ".join(_padded(c, w) for c, w in zip(row, widths, strict=True)) + " │" for row in cells]
    top, middle, bottom = _rule(widths, "┌", "┬", "┐"), _rule(widths, "├", "┼", "┤"), _rule(widths, "└", "┴", "┘")
    return "\n".join(_fitted(line, look) for line in (top, lines[0], middle, *lines[1:], bottom))


def _rule(widths: Sequence[int], left: str, between: str, right: str) -> str:
    return left + between.join("─" * (width + 2) for width in widths) + right


def _padded(cell: str, width: int) -> str:
    return cell + " " * (width - cell_width(cell))


def condition_word(
    say: Translation, condition: Condition, *, unproven_end: bool = False, read_back: bool = True
) -> str:
    """`read_back`: the data was read since it was written, not only names and sizes."""
    unread = condition is Condition.VALID and not read_back
    more = [*([say("not read back")] if unread else []), *([say("unproven end")] if unproven_end else [])]
    return ", ".join([f"{SIGNS[condition]} {say(CONDITION_WORDS[condition])}", *more])


_MOST: Final = 50
_SEVERITIES: Final = {
    Severity.DAMAGE: (BAD, message("damage ")),
    Severity.WARNING: (FAIR, message("warning")),
    Severity.NOTE: ("  ", message("note   ")),
}


def finding_lines(say: Translation, findings: Sequence[Finding]) -> list[str]:
    """A sign, where, what and a remedy per finding, the gravest first; empty when there are none."""
    ordered = sorted(findings, key=lambda finding: list(_SEVERITIES).index(finding.severity))
    lines = [line for finding in ordered[:_MOST] for line in _finding(say, finding)]
    hidden = len(ordered) - _MOST
    more = [say("  ... and {hidden} more; --format=json has all", hidden=hidden)] if hidden > 0 else []
    return ["", say("Findings:"), *lines, *more] if lines else []


def _finding(say: Translation, finding: Finding) -> list[str]:
    sign, word = _SEVERITIES[finding.severity]
    line = [f"  {sign} {say(word)} {shown(finding.where)}: {shown(say.sentence(finding.what))}"]
    return line + ([f"              {say('try: ')}{shown(say.sentence(finding.remedy))}"] if finding.remedy else [])
