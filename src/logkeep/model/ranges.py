"""Half-open ranges of positions, and whether they cover a span without gap or overlap."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Range:
    """Positions `[start, end)`."""

    start: int
    end: int

    def __post_init__(self) -> None:
        if self.start > self.end:
            raise ValueError(f"range [{self.start}, {self.end}) runs backwards")

    def __len__(self) -> int:
        return self.end - self.start

    def __str__(self) -> str:
        return f"[{self.start}, {self.end})"


@dataclass(frozen=True)
class Tiling:
    """How pieces cover a span: the gaps between them and their overlaps."""

    gaps: tuple[Range, ...]
    overlaps: tuple[Range, ...]

    @property
    def exact(self) -> bool:
        return not self.gaps and not self.overlaps


def tile(span: Range, pieces: Iterable[Range]) -> Tiling:
    """Compare pieces with the span they should cover. Pieces may extend past its ends; empty ones are ignored."""
    gaps: list[Range] = []
    overlaps: list[Range] = []
    reached = span.start
    for piece in sorted(p for p in pieces if p.start < p.end):
        if piece.end <= span.start or piece.start >= span.end:
            continue
        start, end = max(piece.start, span.start), min(piece.end, span.end)
        if start > reached:
            gaps.append(Range(reached, start))
        elif start < reached:
            overlaps.append(Range(start, min(reached, end)))
        reached = max(reached, end)
    if reached < span.end:
        gaps.append(Range(reached, span.end))
    return Tiling(tuple(gaps), tuple(overlaps))
