"""A folded log against its source: a live record is archived, or overwritten by a later archived one."""

import numpy as np

from logkeep.formats.compaction.barrier_kernels import TOMBSTONE
from logkeep.formats.compaction.barriers import ROW
from logkeep.formats.compaction.source_compare import LIVE, compare_keys, joined


def _found(*rows: tuple[int, int, int, int]) -> tuple[int, list[int], list[int]]:
    """Key, offset, content, flags."""
    made = np.array(
        [(key, ~key & 0xFF, content, offset, 0, key, 0, kind, 0) for key, offset, content, kind in rows], ROW
    )
    found = joined([compare_keys(made), compare_keys(made[:0])])
    return found.equal, found.missing.tolist(), found.differing.tolist()


def test_equal_records_and_overwritten_ones_are_no_difference() -> None:
    assert _found((1, 5, 7, 0), (1, 5, 7, LIVE), (1, 2, 6, LIVE), (2, 1, 1, 0)) == (1, [], [])


def test_a_live_record_without_a_later_archived_one_is_missing() -> None:
    assert _found((1, 5, 7, LIVE)) == (0, [5], [])
    assert _found((1, 4, 7, 0), (1, 5, 7, LIVE)) == (0, [5], [])
    assert _found((2, 9, 7, 0), (1, 5, 7, LIVE)) == (0, [5], []), "another key is no successor"


def test_another_content_at_the_same_offset_differs() -> None:
    assert _found((1, 5, 7, 0), (1, 5, 8, LIVE)) == (0, [], [5])


def test_a_dropped_tombstone_is_missing_only_if_it_would_bring_a_value_back() -> None:
    assert _found((1, 5, 7, LIVE | TOMBSTONE)) == (0, [], [])
    assert _found((1, 3, 7, 0), (1, 5, 7, LIVE | TOMBSTONE)) == (0, [5], [])
