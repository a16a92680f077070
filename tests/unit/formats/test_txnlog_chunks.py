"""A log whose records lie across the borders of what is read at once, wherever those fall."""

from pathlib import Path

from logkeep.formats.zookeeper.txnlog import bodies, scan
from tests.zookeeper.encoding import log_of, set_data


def test_a_chunk_may_end_anywhere_in_a_record(tmp_path: Path) -> None:
    records = [set_data(zxid, b"x" * 30) for zxid in range(1, 60)]
    path = tmp_path / "log.1"
    path.write_bytes(log_of(records, 100))
    for chunk_bytes in range(16, 16 + len(records[0]) + 1):
        with path.open("rb") as file:
            found = scan(file, chunk_bytes=chunk_bytes)
        assert (found.records, found.damage) == (59, ()), chunk_bytes


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
