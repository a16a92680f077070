"""The tables of a Markdown page as values."""

import re
from dataclasses import dataclass

_NUMBER = re.compile(r"-?[\d,]+(?:\.\d+)?")


@dataclass(frozen=True)
class Table:
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def number(self, row: str, column: str) -> float:
        """The number in a cell. Raises KeyError if there is no such row, column or number."""
        place = self.headers.index(column) if column in self.headers else None
        cells = next((cells for cells in self.rows if cells[0] == row), None)
        found = _NUMBER.match(cells[place]) if cells and place is not None else None
        if found is None:
            raise KeyError(f"no number at {row!r}, {column!r}")
        return float(found[0].replace(",", ""))


def tables(page: str) -> list[Table]:
    """All tables, in order. Code marks in cells are left out."""
    found: list[Table] = []
    for block in re.findall(r"(?:^\|.*\n)+", page, re.M):
        headers, _ruler, *rows = (_cells(line) for line in block.splitlines())
        found.append(Table(headers, tuple(rows)))
    return found


def table_with(page: str, *headers: str) -> Table:
    """The only table that has these columns. Raises KeyError otherwise."""
    fitting = [table for table in tables(page) if set(headers) <= set(table.headers)]
    if len(fitting) != 1:
        raise KeyError(f"{len(fitting)} tables have the columns {headers}")
    return fitting[0]


def _cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip().replace("`", "") for cell in line.strip().strip("|").split("|"))
