"""A small terminal: bytes that commands print go in, lines with colours and the times they were seen come out. Pure.

It knows what Logkeep prints: text, newlines, carriage returns, the erasure of a line, colours. Other escape sequences
are left out.
"""

import re
import unicodedata
from dataclasses import dataclass, field

StyledText = tuple[str, str]
"""Text and its style: words such as `bold green`, empty for plain text."""
_PIECE = re.compile(
    r"\x1b\[(?P<codes>[0-9;]*)(?P<end>[A-Za-z])|(?P<newline>\n)|(?P<return>\r)|(?P<text>[^\x1b\r\n]+)|.", re.S
)
_STYLES = {"1": "bold", "2": "dim", "31": "red", "32": "green", "33": "yellow"}


@dataclass
class LineVersion:
    """What a line was from one moment on, until another (None: until the end)."""

    row: int
    runs: tuple[StyledText, ...]
    seen_s: float
    gone_s: float | None = None


@dataclass
class Terminal:
    """Lines are never dropped; scrolling is up to the picture."""

    columns: int
    versions: list[LineVersion] = field(default_factory=list)
    row: int = 0
    _column: int = 0
    _style: tuple[str, ...] = ()
    _cells: dict[int, list[StyledText]] = field(default_factory=dict)

    def write(self, printed: str, now_s: float) -> None:
        """Take what was printed at a moment."""
        touched = {self.row}
        for piece in _PIECE.finditer(printed):
            self._take(piece, touched)
        touched.add(self.row)
        for row in sorted(touched):
            self._keep(row, now_s)

    def _take(self, piece: re.Match[str], touched: set[int]) -> None:
        if piece["text"]:
            for character in piece["text"]:
                self._put(character, touched)
        elif piece["newline"]:
            self.row, self._column = self.row + 1, 0
        elif piece["return"]:
            self._column = 0
        elif piece["end"] == "K":
            del self._line()[self._column :]
        elif piece["end"] == "m":
            self._style = self._styled(piece["codes"])
        touched.add(self.row)

    def _styled(self, codes: str) -> tuple[str, ...]:
        style = self._style
        for code in codes.split(";"):
            style = (*style, _STYLES[code]) if code in _STYLES else ()
        return style

    def _line(self) -> list[StyledText]:
        return self._cells.setdefault(self.row, [])

    def _put(self, character: str, touched: set[int]) -> None:
        if unicodedata.category(character) == "Cc":
            return
        if self._column == self.columns:
            self.row, self._column = self.row + 1, 0
            touched.add(self.row)
        line = self._line()
        line += [(" ", "")] * (self._column - len(line))
        line[self._column : self._column + 1] = [(character, " ".join(self._style))]
        self._column += 1

    def _keep(self, row: int, now_s: float) -> None:
        """Record what a line is now, if that is something new."""
        runs = _joined(self._cells.get(row, []))
        before = next((each for each in reversed(self.versions) if each.row == row), None)
        if runs == (before.runs if before is not None else ()):
            return
        if before is not None:
            before.gone_s = now_s
            if before.seen_s == now_s:
                self.versions.remove(before)
        self.versions.append(LineVersion(row, runs, now_s))


def _joined(cells: list[StyledText]) -> tuple[StyledText, ...]:
    """Neighbours of one style as one run, without blanks at the end."""
    runs: list[StyledText] = []
    for character, style in cells:
        if runs and runs[-1][1] == style:
            runs[-1] = (runs[-1][0] + character, style)
        else:
            runs.append((character, style))
    while runs and not runs[-1][0].rstrip():
        runs.pop()
    return tuple([*runs[:-1], (runs[-1][0].rstrip(), runs[-1][1])] if runs else [])
