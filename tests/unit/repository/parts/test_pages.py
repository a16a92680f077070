"""Page headers are read before any page is: each way in which one can lie is refused."""

import pytest

from logkeep.errors import Damaged
from logkeep.repository.parts.pages import ColumnChunk, decoded_bytes

VALUES = 10


def _varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def _zigzag(value: int) -> bytes:
    return _varint(value << 1 if value >= 0 else (-value << 1) - 1)


def _number(value: int) -> bytes:
    return b"\x15" + _zigzag(value)


def _page(kind: int, plain: int, stored: int, details: bytes, field: int, *, body: int | None = None) -> bytes:
    """A header as Parquet writes it, and `body` bytes behind it (as many as it says, if not given)."""
    header = _number(kind) + _number(plain) + _number(stored) + bytes([(field - 3) << 4 | 12]) + details + b"\0\0"
    return header + (_frame(plain, stored) if body is None else bytes(body))


def _frame(plain: int, stored: int) -> bytes:
    """A zstd frame of so many bytes: a raw block, and one byte that is repeated as often as the page says."""
    raw, repeated = stored - 13, min(max(plain, 0), 1 << 17)
    blocks = (raw << 3).to_bytes(3, "little") + bytes(raw) + (repeated << 3 | 0b011).to_bytes(3, "little") + b"\0"
    return b"\x28\xb5\x2f\xfd\x00\x58" + blocks


def _data(values: int = VALUES, *, encoding: int = 0, plain: int = 80, stored: int = 20, kind: int = 0) -> bytes:
    return _page(kind, plain, stored, _number(values) + _number(encoding) + _number(3) + _number(3), 5)


def _dictionary(values: int = 3, *, encoding: int = 0, plain: int = 30) -> bytes:
    return _page(2, plain, 20, _number(values) + _number(encoding), 7)


def _sum(pages: bytes, *, budget: int = 1000, values: int = VALUES) -> int:
    return decoded_bytes(memoryview(b"PAR1" + pages), [ColumnChunk(4, len(pages), values)], budget)


def test_sizes_of_all_pages_add_up() -> None:
    assert _sum(_dictionary() + _data(4, encoding=8) + _data(6, encoding=2)) == 190


def test_statistics_in_a_header_are_passed_over() -> None:
    statistics = b"\x1c" + b"\x18\x02ab" + b"\x26\x04" + b"\x21" + b"\x12" + b"\0"
    details = _number(VALUES) + _number(0) + _number(3) + _number(3) + statistics
    assert _sum(_page(0, 80, 20, details, 5)) == 80


@pytest.mark.parametrize(
    ("pages", "message"),
    (
        (_data(plain=2**31 - 1), "more bytes than it can hold"),
        (_data(5, plain=600) + _data(5, plain=600), "larger than 1000"),
        (_data(plain=-1), "does not fit"),
        (_page(0, 80, 500, b"", 5, body=20), "does not fit"),
        (_page(0, 80, -5, b"", 5, body=20), "does not fit"),
        (_data(plain=2**31), "lacks a number"),
        (_data(9), "9 values instead of the 10"),
        (_data(2**31 - 1), "values instead"),
        (_data(-1) + _data(11), "data page of an unexpected"),
        (_data(encoding=7), "data page of an unexpected"),
        (_data(kind=3), "unexpected kind"),
        (_data(kind=1), "unexpected kind"),
        (_data() + _dictionary(), "unexpected kind"),
        (_dictionary() + _dictionary() + _data(), "unexpected kind"),
        (_dictionary(2**31 - 1) + _data(), "dictionary page of an unexpected"),
        (_dictionary(encoding=7) + _data(), "dictionary page of an unexpected"),
        (b"\x15", "cut off"),
        (b"\x15" + b"\xff" * 20, "without end"),
        (b"\x18\xff\xff\x03", "cut off"),
        (b"\x1c" * 20, "nested too deep"),
        (b"\x19" + b"\x19" * 20, "nested too deep"),
        (b"\x1b\x15" + bytes(20), "unexpected type"),
        (b"\x19\xf5" + _varint(10**9) + bytes(20), "cut off"),
        (b"\x05\x02\x02" + b"\x05\x02\x02" + bytes(9), "cannot be"),
        (b"\x05\xff\x7f\x02", "cannot be"),
        (b"\0" * 9, "lacks a number"),
        (_number(0) + _number(8) + _number(0) + b"\0", "lacks its details"),
        (b"\x16\x00" + _data()[2:], "lacks a number"),
    ),
)
def test_a_header_that_lies_is_damage(pages: bytes, message: str) -> None:
    with pytest.raises(Damaged, match=message):
        _sum(pages)


@pytest.mark.parametrize("chunk", ((4, 10**9), (-8, 20), (0, 20), (10**9, 1), (4, -1)))
def test_a_column_outside_the_file_is_damage(chunk: tuple[int, int]) -> None:
    with pytest.raises(Damaged, match="outside of the file"):
        decoded_bytes(memoryview(b"PAR1" + _data()), [ColumnChunk(*chunk, VALUES)], 1000)
