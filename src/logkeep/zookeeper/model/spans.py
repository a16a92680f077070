"""Spans of transaction numbers: pairs of first and last, both included. Pure."""

from collections.abc import Iterable, Iterator, Sequence

Span = tuple[int, int]


def joined(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The same numbers in as few spans as possible, in order."""
    found: list[Span] = []
    for first, last in sorted(spans):
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], last)
        else:
            found.append((first, last))
    return tuple(found)


def runs_of(zxids: Iterable[int]) -> Iterator[Span]:
    """First and last of each run of consecutive numbers; they must come in order."""
    start = last = -1
    for zxid in zxids:
        if zxid != last + 1 or start < 0:
            if start >= 0:
                yield start, last
            start = zxid
        last = zxid
    if start >= 0:
        yield start, last


def outside(runs: Sequence[Span], spans: Sequence[Span]) -> tuple[Span, ...]:
    """The part of the runs that is in none of the spans."""
    left = tuple(runs)
    for start, end in spans:
        below = [(first, min(last, start - 1)) for first, last in left]
        above = [(max(first, end + 1), last) for first, last in left]
        left = tuple(sorted((first, last) for first, last in (*below, *above) if first <= last))
    return left


def inside(runs: Sequence[Span], spans: Sequence[Span]) -> tuple[Span, ...]:
    """The part of the runs that is in any of the spans."""
    return outside(runs, outside(runs, spans))


def contains(spans: Iterable[Span], zxid: int) -> bool:
    return any(first <= zxid <= last for first, last in spans)


def overlap(one: Span, other: Span) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]
