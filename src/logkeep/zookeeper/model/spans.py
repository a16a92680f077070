"""Spans of transaction numbers: pairs of first and last, both included. Pure."""

from collections.abc import Iterator, Sequence


def joined(spans: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The same numbers in as few spans as possible, in order."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], last)
        else:
            found.append((first, last))
    return tuple(found)


def runs_of(zxids: Iterator[int]) -> Iterator[tuple[int, int]]:
    """First and last of those that follow each other; they come in order."""
    start = last = -1
    for zxid in zxids:
        if zxid != last + 1 or start < 0:
            if start >= 0:
                yield start, last
            start = zxid
        last = zxid
    if start >= 0:
        yield start, last


def outside(runs: Sequence[tuple[int, int]], spans: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """What of the runs is in none of the spans."""
    left = tuple(runs)
    for start, end in spans:
        below = [(first, min(last, start - 1)) for first, last in left]
        above = [(max(first, end + 1), last) for first, last in left]
        left = tuple(sorted((first, last) for first, last in (*below, *above) if first <= last))
    return left
