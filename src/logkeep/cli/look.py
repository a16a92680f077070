"""How answers look: colours, symbols, tables, sizes, times. Pure: a `Look` in, text out.

Colour never carries meaning alone: every state is also a word. Every symbol has an ASCII twin for terminals that are
not UTF-8.
"""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

_ASCII = {"…": "...", "→": "->", "·": "-", "–": "-", "×": "x", "≥": ">=", "≤": "<=", "█": "#", "░": ".", "’": "'"}
_CODES = {"red": "31", "green": "32", "yellow": "33", "dim": "2", "bold": "1"}
_STATES = {"OK": "green", "WARN": "yellow", "FAIL": "red", "NOTE": "dim"}


@dataclass(frozen=True)
class Look:
    """What the terminal (or file) behind a stream can show."""

    colour: bool = False
    unicode: bool = False
    width: int | None = None
    """Columns, or None where lines may be as long as they like."""
    zone: tzinfo | None = None
    """For times; None is the local zone."""

    def text(self, text: str) -> str:
        """The text in characters that this terminal has."""
        if self.unicode:
            return text.encode("utf-8", "backslashreplace").decode()  # argv may hold bytes that are no text
        for character, twin in _ASCII.items():
            text = text.replace(character, twin)
        return text.encode("ascii", "backslashreplace").decode()

    def paint(self, text: str, style: str) -> str:
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if self.colour and text else text

    def state(self, word: str) -> str:
        """`OK`, `WARN`, `FAIL` or `NOTE`: the word is the message, the colour a help."""
        return self.paint(word, _STATES[word])

    def moment(self, moment: datetime | None) -> str:
        """`2026-11-15 10:30:00 +0100`: to the second, with its zone; `-` when there is none."""
        return moment.astimezone(self.zone).strftime("%Y-%m-%d %H:%M:%S %z") if moment else "-"

    def table(self, headers: Sequence[str], rows: Iterable[Sequence[str]], right: str = "") -> str:
        """Aligned columns; the columns whose header is named in `right` (comma separated) end flush.

        When the terminal is too narrow the widest column is cut, never wrapped: a line stays a row.
        """
        cells = [[self.text(str(cell)) for cell in row] for row in [headers, *rows]]
        widths = [max(cell_width(row[i]) for row in cells) for i in range(len(headers))]
        self._narrow(widths)
        flush = {name.strip() for name in right.split(",")}
        lines = [
            "  ".join(
                self._fit(cell, w, flush=h in flush) for cell, w, h in zip(row, widths, headers, strict=True)
            ).rstrip()
            for row in cells
        ]
        return "\n".join([self.paint(lines[0], "bold"), *lines[1:]])

    def pairs(self, values: Mapping[str, str]) -> str:
        """`name   value` lines, values aligned."""
        width = max((cell_width(name) for name in values), default=0)
        return "\n".join(self.text(f"{name:<{width}}  {value}").rstrip() for name, value in values.items())

    def _narrow(self, widths: list[int]) -> None:
        if self.width is None:
            return
        over = sum(widths) + 2 * (len(widths) - 1) - self.width
        while over > 0 and max(widths) > 12:
            widest = widths.index(max(widths))
            widths[widest] -= 1
            over -= 1

    def _fit(self, cell: str, width: int, *, flush: bool) -> str:
        if cell_width(cell) > width:
            mark = self.text("…")
            while cell_width(cell) > width - len(mark):
                cell = cell[:-1]
            cell += mark
        blank = " " * (width - cell_width(cell))
        return blank + cell if flush else cell + blank


def cell_width(text: str) -> int:
    """Columns that the text takes on a terminal: CJK characters take two."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 0 if unicodedata.combining(c) else 1 for c in text)


def size(size_bytes: int | float) -> str:
    """`0 B`, `999 B`, `1.2 GiB`: for people; JSON has the integer."""
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


def duration(value: timedelta | float) -> str:
    """Two units are enough: `0.4 s`, `12 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`."""
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for size_s, name, next_s, next_name in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size_s:
            rest = whole % size_s // next_s
            return f"{whole // size_s} {name}" + (f" {rest} {next_name}" if rest else "")
    return f"{whole} s"
