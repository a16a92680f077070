"""A log whose records lie across the borders of what is read at once, wherever those fall."""

import random
from pathlib import Path

import numpy as np
import pytest

from logkeep.formats.zookeeper.txnlog import bodies, scan
from tests.support.zookeeper.encoding import log_of, set_data


def test_a_chunk_may_end_anywhere_in_a_record(tmp_path: Path) -> None:
    records = [set_data(zxid, b"x" * 30) for zxid in range(1, 60)]
    path = tmp_path / "log.1"
    path.write_bytes(log_of(records, 100))
    for chunk_bytes in range(16, 16 + len(records[0]) + 1):
        with path.open("rb") as file:
            found = scan(file, chunk_bytes=chunk_bytes)
        assert (found.records, found.damage) == (59, ()), chunk_bytes


@pytest.mark.parametrize("chunk_bytes", [4097, 6000, 8192, 20_000])
@pytest.mark.parametrize("damaged", [False, True])
def test_bytes_keep_their_place_in_a_page_of_memory(tmp_path: Path, chunk_bytes: int, damaged: bool) -> None:
    """So that they can be written from there; records may be larger than a chunk."""
    sizes = random.Random(1)
    log = bytearray(log_of([set_data(zxid, b"x" * sizes.randrange(9000)) for zxid in range(1, 80)], 100))
    if damaged:
        log[len(log) // 2] ^= 1
    path = tmp_path / "log.1"
    path.write_bytes(log)
    given = bytearray()

    def sink(view: memoryview) -> None:
        assert (np.frombuffer(view, np.uint8).ctypes.data - len(given)) % 4096 == 0
        given.extend(view)

    with path.open("rb") as file:
        found = scan(file, chunk_bytes=chunk_bytes, sink=sink, deep=True)
    with path.open("rb") as file:
        assert found == scan(file, deep=True)
    assert (bytes(given), len(found.damage)) == (bytes(log[: found.size_bytes]), damaged)


def test_a_scan_may_begin_at_any_record(tmp_path: Path) -> None:
    records = [set_data(zxid) for zxid in range(1, 20)]
    path = tmp_path / "log.1"
    path.write_bytes(log_of(records, 100))
    for count in range(20):
        start = 16 + sum(map(len, records[:count]))
        with path.open("rb") as file:
            file.seek(start - 1)
            assert scan(file, start_at=1).records == 19 - count
        with path.open("rb") as file:
            assert scan(file, start_at=start).records == 19 - count
    with path.open("rb") as file:
        assert len(list(bodies(file))) == 19


def test_a_record_above_the_limit_is_damage_wherever_it_lies(tmp_path: Path) -> None:
    """Also one that lies within what is read at once."""
    path = tmp_path / "log.1"
    path.write_bytes(log_of([set_data(1), set_data(2, b"x" * 3000), set_data(3), set_data(4)], 100))
    for chunk_bytes in (64, 1 << 20):
        with path.open("rb") as file:
            found = scan(file, largest_record=1000, deep=True, chunk_bytes=chunk_bytes)
        assert (found.records, found.last_zxid, [d.resumes_zxid for d in found.damage]) == (1, 1, [3]), chunk_bytes
    with path.open("rb") as file:
        assert scan(file, largest_record=4000).records == 4
