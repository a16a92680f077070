"""Rows of a comparison in slices: all rows of a key are in one slice, and no row is lost or doubled."""

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from logkeep.formats.compare.vanished_keys import ROW, Rows
from logkeep.kafka.logs.row_slices import RowSlices


def _rows(seed: int, many: int) -> Rows:
    random = np.random.default_rng(seed)
    rows = np.zeros(many, ROW)
    rows["hash"], rows["offset"] = random.integers(0, 50, many), np.arange(many) + 1_000 * seed
    return rows


@pytest.mark.parametrize("slices", [1, 2, 7, 600])
@pytest.mark.parametrize("held_bytes", [1, 1_000, 32 << 20])
def test_every_row_is_in_the_slice_of_its_key(slices: int, held_bytes: int) -> None:
    added = [_rows(seed, many) for seed, many in enumerate((0, 5, 300, 1, 80))]
    with closing(RowSlices(slices, ROW, held_bytes)) as made:
        for rows in added:
            made.add(rows)
        found = list(made)
    assert len(found) == slices
    assert np.array_equal(np.sort(np.concatenate(found)), np.sort(np.concatenate(added)))
    places = [(int(key), number) for number, rows in enumerate(found) for key in np.unique(rows["hash"])]
    assert len(dict(places)) == len(places), "a key is in two slices"


def test_any_number_of_slices_needs_one_open_file() -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    with closing(RowSlices(5_000, ROW)) as made:
        made.add(_rows(1, 300))
        assert sum(map(len, made)) == 300
        assert len(list(Path("/proc/self/fd").iterdir())) == before + 1
