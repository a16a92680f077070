"""Names in `version-2`, read as a server reads them, and which zxid may follow which."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkeep.formats.zookeeper import shown
from logkeep.formats.zookeeper.names import (
    FileKind,
    FileName,
    SnapshotPacking,
    counter_of,
    epoch_of,
    follows,
    hex_zxid,
    log_name,
    parse_name,
    snapshot_name,
)

ZXIDS = st.integers(0, (1 << 63) - 1)


@given(ZXIDS)
def test_names_come_back(zxid: int) -> None:
    assert parse_name(log_name(zxid)) == FileName(FileKind.LOG, zxid, SnapshotPacking.PLAIN, stray=False)
    assert parse_name(snapshot_name(zxid)) == FileName(FileKind.SNAPSHOT, zxid, SnapshotPacking.PLAIN, stray=False)
    assert (epoch_of(zxid) << 32) + counter_of(zxid) == zxid == int(hex_zxid(zxid), 16)


@pytest.mark.parametrize(
    ("name", "packing"), [("snapshot.1f.gz", SnapshotPacking.GZIP), ("snapshot.1f.snappy", SnapshotPacking.SNAPPY)]
)
def test_packed_snapshots(name: str, packing: SnapshotPacking) -> None:
    assert parse_name(name) == FileName(FileKind.SNAPSHOT, 0x1F, packing, stray=False)


@pytest.mark.parametrize(
    "name", ["log.5f8f.bak", "log.1c00.fixed", "log.1.gz", "snapshot.1.zst", "log.01", "log.AB", "log.8000000000000000"]
)
def test_strangers_that_a_server_would_read(name: str) -> None:
    found = parse_name(name)
    assert found is not None
    assert found.stray


@pytest.mark.parametrize("name", ["", "log", "log.", "log.xyz", "snapshot", "acceptedEpoch", "logs.1", "..", "a/log.1"])
def test_what_no_server_looks_at(name: str) -> None:
    assert parse_name(name) is None


@given(ZXIDS, ZXIDS)
def test_what_follows_is_later_and_next_in_its_epoch(earlier: int, later: int) -> None:
    if follows(earlier, later):
        assert later == earlier + 1 or (epoch_of(later) > epoch_of(earlier) and counter_of(later) == 1)
    assert follows(earlier, (epoch_of(earlier) + 1 << 32) + 1)
    assert not follows(earlier, earlier)
    assert not follows(earlier, (epoch_of(earlier) + 1 << 32) + 2)


def test_an_epoch_ends_where_its_numbers_do() -> None:
    """Servers begin a new epoch before the counter runs over: the next number would be none of this epoch."""
    assert not follows(0x1FFFFFFFF, 0x200000000)
    assert follows(0x1FFFFFFFF, 0x200000001)
    assert follows(0x100000001, 0x500000001)


def test_paths_for_people() -> None:
    assert (shown(b""), shown("/ключ".encode()), shown(b"/\xff")) == ("/", "/ключ", "/\\xff")
