"""Which archived records are buried: judged by a model that remembers what a cleaner forgot."""

import random

import numpy as np

from logkeep.formats.compare.key_group_kernels import LIVE, TOMBSTONE, TRANSACTIONAL
from logkeep.formats.compare.vanished_keys import (
    ROW,
    Rows,
    all_vanished,
    judge_keys,
    suspicious,
)


def _rows(*rows: tuple[int, int, int]) -> Rows:
    """Key, offset, flags."""
    return np.array([(key, ~key & 0xFFFF, offset, kind) for key, offset, kind in rows], ROW)


def _buried(*rows: tuple[int, int, int]) -> list[int]:
    return sorted(judge_keys(_rows(*rows), 0).offsets.tolist())


def test_all_records_of_a_vanished_key_are_buried_and_no_other() -> None:
    assert _buried((1, 5, 0), (1, 2, 0), (2, 3, LIVE), (3, 1, 0), (3, 4, LIVE)) == [2, 5]


def test_an_archived_tombstone_needs_no_burial() -> None:
    assert _buried((1, 5, TOMBSTONE), (1, 2, 0)) == []
    assert _buried((1, 5, 0), (1, 2, TOMBSTONE)) == [2, 5]


def test_an_aborted_record_whose_marker_was_missed_is_buried_alone() -> None:
    rows = ((1, 2, LIVE), (1, 5, TRANSACTIONAL), (2, 3, LIVE), (2, 6, TRANSACTIONAL | TOMBSTONE))
    assert _buried(*rows) == [5, 6]
    assert judge_keys(_rows(*rows), 0).odd == 2
    assert judge_keys(_rows(*rows), 0).unclear == 0


def test_a_cleaner_at_work_is_noticed() -> None:
    found = judge_keys(_rows((1, 2, LIVE), (1, 5, 0)), 0)
    assert (found.odd, found.unclear, found.offsets.tolist()) == (1, 1, [])


def test_keys_below_the_live_log_start_do_not_count_as_suspicious() -> None:
    found = judge_keys(_rows((1, 2, 0), (2, 9, 0), (3, 10, LIVE)), 5)
    assert (found.keys, found.vanished, sorted(found.offsets.tolist())) == (2, 1, [2, 9])
    assert [suspicious(*counts) for counts in ((9_999, 1_000), (10_000, 1_000), (999, 999), (50_000, 5_001))] == [
        True,
        False,
        False,
        True,
    ]


def test_histories_with_missed_tombstones_end_like_the_live_log() -> None:
    """Keys are written and deleted; the archive misses some tombstones; what is live is the latest value."""
    choose = random.Random(5)
    for _ in range(300):
        archived, latest = list[tuple[int, int, bool]](), dict[int, tuple[int, bool]]()
        for offset in range(choose.randrange(1, 40)):
            key, deleted = choose.randrange(6), choose.random() < 0.4
            latest[key] = (offset, deleted)
            if not (deleted and choose.random() < 0.5):
                archived.append((key, offset, deleted))
        live = {offset for offset, deleted in latest.values() if not deleted}
        rows = [(k, o, (LIVE if o in live else 0) | (TOMBSTONE if d else 0)) for k, o, d in archived]
        parts = [judge_keys(_rows(*[r for r in rows if r[0] % 2 == half]), 0) for half in (0, 1)]
        buried = set(all_vanished(parts).offsets.tolist())
        table = {k: (o, d) for k, o, d in archived if o not in buried}
        assert {k: o for k, (o, d) in table.items() if not d} == {k: o for k, (o, d) in latest.items() if not d}


def test_keys_that_share_a_lane_or_a_place_in_the_table_stay_apart() -> None:
    """Each pair of lanes is a key, in any order of rows, however many begin at the same place."""
    pairs = [(one, two << 40) for one in range(9) for two in range(9)]
    shuffled = random.Random(7).sample([(pair, offset) for pair in pairs for offset in (1, 2)], 2 * len(pairs))
    rows = np.array([(*pair, offset, LIVE if offset == 1 and pair[0] else 0) for pair, offset in shuffled], ROW)
    found = judge_keys(rows, 0)
    assert (found.keys, found.vanished, found.odd, found.unclear) == (81, 9, 72, 72)
    assert sorted(found.offsets.tolist()) == 9 * [1] + 9 * [2]


def test_no_rows_are_no_keys() -> None:
    found = judge_keys(np.empty(0, ROW), 0)
    assert (found.offsets.tolist(), found.keys) == ([], 0)
