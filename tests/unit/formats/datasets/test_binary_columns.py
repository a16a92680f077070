"""Parts of a buffer as a binary column."""

import numpy as np
import pytest

from logkeep.formats.datasets.arrow import binary_column

DATA = np.frombuffer(b"abcdefgh", np.uint8)


def test_parts_may_overlap_be_empty_or_null() -> None:
    starts, sizes = np.array([2, 0, 8, 1, 5]), np.array([3, -1, 0, 6, 1])
    column = binary_column(DATA, starts, sizes)
    column.validate(full=True)
    assert (column.to_pylist(), column.null_count) == ([b"cde", None, b"", b"bcdefg", b"f"], 1)
    assert binary_column(DATA, starts[:0], sizes[:0]).to_pylist() == []
    rows = np.array([[1, 2, 9], [4, 3, 9]])
    assert binary_column(DATA, rows[:, 0], rows[:, 1]).to_pylist() == [b"bc", b"efg"]


def test_a_column_ends_before_2_gib() -> None:
    with pytest.raises(ValueError, match="2 GiB"):
        binary_column(DATA, np.zeros(3, np.int64), np.full(3, 2**30))
