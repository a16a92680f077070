"""Which batches are read together."""

import numpy as np

from logkeep.formats.kafka.batch_index import ROW, BatchIndex
from logkeep.kafka.scan.batch_rows import read_together

MB = 1 << 20


def index_of(*sizes: int) -> BatchIndex:
    rows = np.zeros(len(sizes), ROW)
    rows["size"] = sizes
    rows["position"] = np.cumsum(sizes) - sizes
    return BatchIndex(rows)


def test_reads_grow_so_that_a_reader_of_a_few_records_reads_little() -> None:
    index = index_of(*[MB // 4] * 200)
    found = list(read_together(index, np.arange(200)))
    assert [len(group) for group in found] == [8, 16, 32, 32, 32, 32, 32, 16]
    assert np.concatenate(found).tolist() == list(range(200))


def test_a_batch_that_is_larger_is_read_alone_and_distant_ones_are_not_read_together() -> None:
    index = index_of(100, 9 * MB, 100, 20_000, 100)
    assert [group.tolist() for group in read_together(index, np.array([0, 1, 2, 4]))] == [[0], [1], [2], [4]]
    assert [group.tolist() for group in read_together(index, np.array([2, 3, 4]))] == [[2, 3, 4]]
