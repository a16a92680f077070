"""Changes as Arrow rows say what the decoder of single transactions says, for everything that servers write."""

import io
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkeep.errors import Damaged, FormatTooNew
from logkeep.formats.zookeeper.changes import OPS, SCHEMA, as_text, changes, hexadecimal
from logkeep.formats.zookeeper.transactions import (
    CheckVersion,
    CloseSession,
    Create,
    Delete,
    FailedTxn,
    Multi,
    SetAcl,
    SetData,
    Simple,
    Transaction,
    decode,
)
from logkeep.formats.zookeeper.txnlog import tables
from tests.support.zookeeper import strategies as drawn
from tests.support.zookeeper.encoding import body, log_of, record


def _told(op: str, change: object) -> tuple[str, bytes | None, int | None, int | None, bool, int | None]:
    match change:
        case Create(path, data, _, ephemeral):
            return op, path or b"/", None if data is None else len(data), 0, ephemeral, None
        case SetData(path, data, version):
            return op, path or b"/", None if data is None else len(data), version, False, None
        case SetAcl(path, _, version) | CheckVersion(path, version):
            return op, path or b"/", None, version, False, None
        case Delete(path):
            return op, path or b"/", None, None, False, None
        case FailedTxn(code):
            return op, None, None, None, False, code
        case _:
            return op, None, None, None, False, None


def _expected(each: Transaction) -> Iterator[tuple[Any, ...]]:
    parts: list[tuple[int, Simple | object]] = [(each.kind, each.change)]
    applied = each.kind != -1
    if isinstance(each.change, Multi):
        parts, applied = list(each.change.parts), each.change.applied
    elif isinstance(each.change, CloseSession):
        parts += [(2, Delete(path)) for path in each.change.paths or ()]
    for part, (kind, change) in enumerate(parts):
        yield (each.zxid, OPS[each.kind], part, *_told(OPS[kind], change), applied)


_COLUMNS = ("zxid", "txn", "part", "op", "path", "data_bytes", "version", "ephemeral", "error", "applied")


def _written(row: dict[str, Any]) -> tuple[Any, ...]:
    """An empty path is the root to the decoder; no server writes one."""
    return tuple(b"/" if row[name] == b"" else row[name] for name in _COLUMNS)


def _rows(log: bytes, most_rows: int) -> list[tuple[Any, ...]]:
    return [
        _written(row)
        for records in tables(io.BytesIO(log))
        for batch in changes(records, most_rows)
        for row in batch.to_pylist()
    ]


@given(st.lists(drawn.transactions(), max_size=8), st.integers(1, 40))
def test_rows_say_what_the_decoder_says(ones: list[Transaction], most_rows: int) -> None:
    ordered = [each._replace(zxid=number) for number, each in enumerate(ones, 1)]
    log = log_of(record(body(each)) for each in ordered)
    assert _rows(log, most_rows) == [row for each in ordered for row in _expected(each)]


@given(st.binary(max_size=80), st.sampled_from([1, 2, 5, 7, 13, 14, 15, 16, 19, 20, 21, -1, -10, -11, 99]))
def test_what_the_decoder_refuses_is_refused(noise: bytes, kind: int) -> None:
    written = bytes(12) + (1).to_bytes(8) + bytes(8) + kind.to_bytes(4, signed=True) + noise
    try:
        expected = list(_expected(decode(written)))
    except (Damaged, FormatTooNew) as refused:
        with pytest.raises(type(refused)):
            _rows(log_of([record(written)]), 4)
    else:
        assert _rows(log_of([record(written)]), 4) == expected


def test_paths_and_sessions_are_shown_as_people_know_them() -> None:
    import pyarrow as pa  # noqa: PLC0415 - only this test makes arrays of its own

    paths = pa.array([b"/a", None, b"/\xed\xa0\xbd\xed\xb8\x80"], SCHEMA.field("path").type)
    assert as_text(paths).to_pylist() == ["/a", None, "/\\xed\\xa0\\xbd\\xed\\xb8\\x80"]
    assert hexadecimal(pa.array([1, -1, 1])).to_pylist() == ["0x1", "0xffffffffffffffff", "0x1"]
