"""Which logs, offsets and times a query's filters leave. Pure.

Only what cannot fulfil a filter is left out; Spark applies every filter again to every row. So bounds may be too wide,
and an unknown filter is ignored.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from logkeep.model.table_format import ColumnFilter

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _BEHIND_LAST = {"=", ">", ">=", "in"}, {"=", "<", "<=", "in"}


@dataclass(frozen=True)
class Bounds:
    """The bounds of what a query reads. None: not limited. Ranges are half open."""

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    start: int | None = None
    end: int | None = None
    since_ms: int | None = None
    until_ms: int | None = None

    def has_log(self, topic: str, partition: int) -> bool:
        return (self.topics is None or topic in self.topics) and (
            self.partitions is None or partition in self.partitions
        )


def bounds_of(filters: Iterable[ColumnFilter]) -> Bounds:
    """The bounds of all filters together."""
    bounds = Bounds()
    for each in filters:
        values = each.value if each.comparison == "in" else (each.value,)
        bounds = _narrowed(bounds, each, tuple(values))
    return bounds


def _narrowed(bounds: Bounds, each: ColumnFilter, values: tuple[Any, ...]) -> Bounds:
    match each.column.lower():
        case "topic" if each.comparison in {"=", "in"} and _all(values, str):
            return replace(bounds, topics=_common(bounds.topics, values))
        case "partition" if _all(values, int):
            return replace(bounds, partitions=_partitions(bounds, each, values))
        case "offset" if _all(values, int):
            start, end = _span(each, values)
            return replace(bounds, start=_highest(bounds.start, start), end=_lowest(bounds.end, end))
        case "timestamp" if _all(values, datetime) and all(v.tzinfo for v in values):
            since_ms, until_ms = _span(each, [_floor_ms(v) for v in values], slack=1)
            return replace(
                bounds, since_ms=_highest(bounds.since_ms, since_ms), until_ms=_lowest(bounds.until_ms, until_ms)
            )
    return bounds


def _all(values: Sequence[Any], kind: type) -> bool:
    """`in` without a value other than null matches nothing, and is left to Spark."""
    return bool(values) and all(isinstance(v, kind) and not isinstance(v, bool) for v in values)


def _partitions(bounds: Bounds, each: ColumnFilter, values: tuple[int, ...]) -> frozenset[int] | None:
    """Partitions are few: comparisons with `<` and `>` are left to Spark."""
    return _common(bounds.partitions, values) if each.comparison in {"=", "in"} else bounds.partitions


def _common(known: frozenset[Any] | None, values: Iterable[Any]) -> frozenset[Any]:
    return frozenset(values) if known is None else known & frozenset(values)


def _span(each: ColumnFilter, values: Sequence[int], slack: int = 0) -> tuple[int | None, int | None]:
    """`slack`: times were rounded down to this many units."""
    first = min(values) + (1 if each.comparison == ">" and not slack else 0)
    behind = max(values) + (0 if each.comparison == "<" and not slack else 1)
    return first if each.comparison in _FIRST else None, behind if each.comparison in _BEHIND_LAST else None


def _floor_ms(time: datetime) -> int:
    return (time - _EPOCH) // timedelta(milliseconds=1)


def _highest(one: int | None, other: int | None) -> int | None:
    return max((n for n in (one, other) if n is not None), default=None)


def _lowest(one: int | None, other: int | None) -> int | None:
    return min((n for n in (one, other) if n is not None), default=None)
