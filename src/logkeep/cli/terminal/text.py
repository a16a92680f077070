"""Text for a terminal: colours, symbols, tables, sizes, times. Pure: a `TerminalStyle` in, text out.

Colour never carries meaning alone: every state is also a word. Every symbol has an ASCII form for terminals that are
not UTF-8.
"""

import re
import textwrap
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

from logkeep.cli.terminal.escaping import LONGEST_CELL, shown
from logkeep.model import plurals

_ASCII = {"…": "...", "→": "->", "·": "-", "–": "-", "×": "x", "≥": ">=", "≤": "<=", "█": "#", "░": ".", "’": "'"}
_CODES = {"red": "31", "green": "32", "yellow": "33", "dim": "2", "bold": "1"}
_TEXT_LEAST, _FREE_LEAST = 12, 16
"""Columns are not cut below this."""
_UNBROKEN, _GLUE = re.compile(r"`[^`]+`|\b[\d.,]+ (?:ms|s|min|h|d|B|[KMGT]iB)\b"), "\0"
_WIDE = re.compile(r"[\u2e80-\uffef]")
_PIECES = re.compile(r"[\u2e80-\uffef][，。；、）:]*|`[^`]+`|[^\s\u2e80-\uffef`]+[，。；、）:]*|`|\s+")
"""Where a line may end: after a Chinese character and its punctuation, and at spaces."""
_STATES = {"OK": "green", "WARN": "yellow", "FAIL": "red", "NOTE": "dim"}


@dataclass(frozen=True)
class TerminalStyle:
    """What the terminal or file of a stream can show."""

    colour: bool = False
    unicode: bool = False
    width: int | None = None
    """Columns, or None where lines may have any length."""
    zone: tzinfo | None = None
    """For times; None is the local zone."""
    language: str = "en"
    """Of the user: `en` or `zh`."""

    def text(self, text: str) -> str:
        """The text in characters that this terminal can show. It escapes nothing else: for values there is `line`."""
        if self.unicode:
            return text.encode("utf-8", "backslashreplace").decode()  # argv may contain bytes that are not text
        for character, ascii_form in _ASCII.items():
            text = text.replace(character, ascii_form)
        return text.encode("ascii", "backslashreplace").decode()

    def line(self, text: str) -> str:
        """One line of text from outside, with control characters escaped; shortened where it is very long."""
        return self.text(shown(text))

    def prose(self, text: str, *, indent: int = 0) -> str:
        """Like `line`, and wrapped between words at the terminal's width; further lines are indented.

        A command in backticks is not broken, so that it can be copied, nor is a number broken from its unit.
        """
        return self.wrapped(self.line(text), indent=indent)

    def wrapped(self, line: str, *, indent: int = 0) -> str:
        """A finished line, wrapped between words at the terminal's width."""
        if self.width is None or cell_width(line) <= self.width:
            return line
        lead = line[: len(line) - len(line.lstrip())]
        if _WIDE.search(line):
            first, *rest = wrapped_by_width(line[len(lead) :], self.width - max(len(lead), indent))
            return "\n".join([f"{lead}{first}", *(" " * indent + each for each in rest)])
        return textwrap.fill(
            _UNBROKEN.sub(lambda found: found[0].replace(" ", _GLUE), line[len(lead) :]),
            self.width,
            initial_indent=lead,
            subsequent_indent=" " * indent,
            break_long_words=False,
            break_on_hyphens=False,
        ).replace(_GLUE, " ")

    def paint(self, text: str, style: str) -> str:
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if self.colour and text else text

    def state(self, word: str) -> str:
        """`OK`, `WARN`, `FAIL` or `NOTE` in its colour."""
        return self.paint(word, _STATES[word])

    def moment(self, moment: datetime | None, *, seconds: bool = True) -> str:
        """`2026-11-15 10:30:00 +0100`, or `-` for None."""
        form = "%Y-%m-%d %H:%M:%S %z" if seconds else "%Y-%m-%d %H:%M %z"
        return moment.astimezone(self.zone).strftime(form) if moment else "-"

    def table(
        self,
        headers: Sequence[str],
        rows: Iterable[Sequence[str]],
        right: str = "",
        spare: str = "",
        free: str = "",
        whole: str = "",
    ) -> str:
        """Aligned columns; those named in `right` (comma separated) are right-aligned.

        When the terminal is too narrow, columns in `spare` are left out, the first named first. Then text is cut, that
        in `free` columns first, and never wrapped: a line stays a row. Right-aligned columns are never cut, because an
        id or number without its end is wrong; neither are columns in `whole`.
        """
        cells = [[self.text(shown(str(cell), LONGEST_CELL)) for cell in row] for row in [headers, *rows]]
        widths = [max(cell_width(row[i]) for row in cells) for i in range(len(headers))]
        flush, loose = _names(right), [i for i, h in enumerate(headers) if h in _names(free)]
        kept = self._shown_columns(headers, widths, [h for h in spare.split(",") if h], loose)
        self._narrow(widths, kept, [i for i in loose if i in kept], _FREE_LEAST)
        self._narrow(widths, kept, [i for i in kept if headers[i] not in flush | _names(whole)], _TEXT_LEAST)
        lines = [
            "  ".join(self._fit(row[i], widths[i], flush=headers[i] in flush) for i in kept).rstrip() for row in cells
        ]
        return "\n".join([self.paint(lines[0], "bold"), *lines[1:]])

    def _shown_columns(
        self, headers: Sequence[str], widths: list[int], spare: list[str], loose: list[int]
    ) -> list[int]:
        """The columns that are shown: all, or without as many spare ones as necessary."""
        kept = list(range(len(headers)))
        least = [min(w, _FREE_LEAST) if i in loose else w for i, w in enumerate(widths)]
        out: list[int] = []
        for name in spare:
            if self._over(least, kept) <= 0:
                break
            out.append(headers.index(name))
            kept.remove(out[-1])
        for column in reversed(out):  # a wide column may have made room for one that was dropped before it
            if self._over(least, [*kept, column]) <= 0:
                kept.append(column)
        return sorted(kept)

    def pairs(self, values: Mapping[str, str]) -> str:
        """`name   value` lines with aligned values; long values are wrapped."""
        width = max((cell_width(name) for name in values), default=0)
        return "\n".join(self._pair(f"{name:<{width}}  ", value).rstrip() for name, value in values.items())

    def _pair(self, name: str, value: str) -> str:
        """A single word that is too long, such as a path, still starts beside its name."""
        longest = max(map(cell_width, value.split()), default=0)
        if self.width is None or len(name) + longest > self.width:
            return self.line(name + value)
        return self.prose(name + value, indent=len(name))

    def _over(self, widths: list[int], kept: list[int]) -> int:
        """By how many columns the table is too wide."""
        return 0 if self.width is None else sum(widths[i] for i in kept) + 2 * (len(kept) - 1) - self.width

    def _narrow(self, widths: list[int], kept: list[int], candidates: list[int], least: int) -> None:
        for _ in range(max(0, self._over(widths, kept))):
            widest = max(candidates, key=lambda i: widths[i], default=None)
            if widest is None or widths[widest] <= least:
                return
            widths[widest] -= 1

    def clipped(self, line: str, width: int) -> str:
        """The line in this many columns, with a mark where its end is cut off."""
        if cell_width(line) <= width:
            return line
        mark = self.text("…")
        while cell_width(line) > width - len(mark):
            line = line[:-1]
        return line + mark

    def _fit(self, cell: str, width: int, *, flush: bool) -> str:
        cell = self.clipped(cell, width)
        blank = " " * (width - cell_width(cell))
        return blank + cell if flush else cell + blank


def _names(text: str) -> set[str]:
    return set(text.split(","))


def wrapped_by_width(text: str, columns: int) -> list[str]:
    """Lines of at most this many columns, where a character may take two."""
    lines = [""]
    for piece in _PIECES.findall(text):
        if lines[-1] and cell_width(lines[-1] + piece.rstrip()) > columns:
            lines.append("")
        lines[-1] += piece if lines[-1] else piece.lstrip()
    return [line.rstrip() for line in lines]


def cell_width(text: str) -> int:
    """Columns of the text on a terminal: CJK characters take two."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 0 if unicodedata.combining(c) else 1 for c in text)


def size(size_bytes: int | float) -> str:
    """`0 B`, `999 B`, `1.2 GiB`: for users; JSON has the integer."""
    amount = float(size_bytes)
    if abs(amount) < 1024:
        return f"{amount:.0f} B"
    for unit in ("KiB", "MiB", "GiB", "TiB", "PiB"):
        amount /= 1024
        if abs(amount) < 1023.95 or unit == "PiB":
            break
    return f"{amount:.1f} {unit}"


def count(number: int) -> str:
    """`1,234,567`."""
    return f"{number:,}"


plural = plurals.plural


def amount(objects: int, stored_bytes: int) -> str:
    """`3 objects, 1.2 GiB`, or `nothing`."""
    return f"{plural(objects, 'object')}, {size(stored_bytes)}" if objects else "nothing"


def duration(value: timedelta | float) -> str:
    """At most two units: `0.4 s`, `12 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`."""
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for size_s, name, next_s, next_name in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size_s:
            rest = whole % size_s // next_s
            return f"{whole // size_s} {name}" + (f" {rest} {next_name}" if rest else "")
    return f"{whole} s"


def ago(seconds: float) -> str:
    """In one unit, rounded down: `just now`, `12 min ago`, `2 d ago`."""
    return "just now" if seconds < 60 else f"{' '.join(duration(seconds).split()[:2])} ago"
