"""Records that are damaged, foreign or too large."""

import pytest

from logkeep.checkpoint import records
from logkeep.checkpoint.records import Kind, MessageSource, Record, Stamp
from logkeep.errors import Damaged, UsageError

STAMP = Stamp(bytes(16), 1, 1)


@pytest.mark.parametrize("data", [b"", b"\x01", b"\x02\x01\x00", b"\x09\x01", b"\x01\x02"])
def test_an_unknown_kind_or_version_is_damage(data: bytes) -> None:
    with pytest.raises(Damaged, match="no kind that this release reads"):
        records.read(None, b"", ((records.KIND, data),), 3, 0)


@pytest.mark.parametrize("cut", [0, 1, 2, 3, 10, 26, 28])
def test_a_cut_or_longer_stamp_or_source_is_none(cut: int) -> None:
    stamp, source = records.pack_stamp(STAMP), records.pack_source(MessageSource("shop.log", 1, 2, 3))
    cut_stamp, cut_source = (stamp[:cut], source[:cut]) if cut < 27 else (stamp + b"x", source + b"x")
    found = Record(Kind.COMMAND, None, b"", ((records.STAMP, cut_stamp), (records.SOURCE, cut_source)))
    assert (records.stamp_of(found), records.source_of(found)) == (None, None)


@pytest.mark.parametrize("low", [b"", b"\x00" * 7, b"\x00" * 9])
def test_a_cut_low_water_mark_is_none(low: bytes) -> None:
    assert records.low_of(Record(Kind.COMMAND, None, b"", ((records.LOW, low),))) is None


@pytest.mark.parametrize("request_id", ["", "x" * 65, "ä" * 33])
def test_a_request_id_has_1_to_64_bytes(request_id: str) -> None:
    with pytest.raises(UsageError, match="bytes"):
        records.command("order", "a", b"", request=request_id)


@pytest.mark.parametrize("value", [b"", b"\xc1", b"\x90", b"\x91\xa1x", b"\x94\x01\x01\x90\xc0"])
def test_an_event_that_cannot_be_read_is_damage(value: bytes) -> None:
    with pytest.raises(Damaged):
        records.event_value(Record(Kind.EVENT, None, value, ()))


def test_a_create_ends_its_batch() -> None:
    create, other = Record(Kind.CREATE, None, b"", ()), Record(Kind.COMMAND, None, b"", ())
    assert records.in_batches([other, create, other, create, create]) == [[other, create], [other, create], [create]]
    assert records.in_batches([]) == []
