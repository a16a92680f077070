"""Which parts to merge when a backup adds rows: few parts for readers, little rewriting for writers.

Parts stand in the order in which their rows were added. A new delta is simply appended while there is room. When the
limit is reached, the newest parts are merged with the delta, back to the first part that is at least `_RATIO` times
as large as everything after it. So sizes fall off geometrically and a large base is left alone for long.

Cost: a part is merged only into one that is at least 1 + 1/`_RATIO` times as large, so a row is rewritten at most
log₁.₂₅(all rows) times, O(n log n) in all; in practice far less, because most deltas are only appended. That holds
while `_RATIO` ** limit newest deltas would exceed all rows (for 16 parts: 4 billion times the delta); beyond it the
newest part is merged with each delta, which keeps the limit and costs more.
"""

from collections.abc import Sequence
from dataclasses import dataclass

_RATIO = 4


@dataclass(frozen=True)
class MergePlan:
    """Indices of existing parts. The new parts are those in `keep`, then one with the rows of `merge` and the delta."""

    keep: tuple[int, ...]
    merge: tuple[int, ...]


def plan_parts(existing: Sequence[int], new_rows: int, limit: int = 16) -> MergePlan:
    """Place `new_rows` behind parts of `existing` row counts, oldest first, so that at most `limit` parts are left.

    Without new rows there is no new part. More existing parts than the limit (written under another one) are fine.
    """
    if limit < 1:
        raise ValueError("at least one part is needed")
    count = len(existing)
    if new_rows == 0 and count <= limit:
        return MergePlan(tuple(range(count)), ())
    first = count if count < limit else _first_to_merge(existing, new_rows, limit)
    return MergePlan(tuple(range(first)), tuple(range(first, count)))


def _first_to_merge(existing: Sequence[int], new_rows: int, limit: int) -> int:
    first = limit - 1
    behind = new_rows + sum(existing[first:])
    while first > 0 and existing[first - 1] < _RATIO * behind:
        first -= 1
        behind += existing[first]
    return first
