"""Transactions of all kinds come back as they were written; bytes that are none are refused."""

import io

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from logkeep.errors import Damaged, FormatTooNew
from logkeep.formats.zookeeper import txnlog
from logkeep.formats.zookeeper.transactions import CloseSession, Transaction, decode
from tests.support.zookeeper import strategies as drawn
from tests.support.zookeeper.encoding import body, log_of, record


@given(drawn.transactions())
@example(Transaction(1, 2, 3, 4, -11, CloseSession((b"/a/b",)), None))
@example(Transaction(1, 2, 3, 4, -11, CloseSession(()), 5))
@example(Transaction(1, 2, 3, 4, -11, CloseSession(None), 5))
def test_a_transaction_is_read_as_it_was_written(transaction: Transaction) -> None:
    assert decode(body(transaction)) == transaction


@given(drawn.transactions(), st.integers(1, 40))
def test_bytes_too_many_or_too_few_are_refused_or_mean_something_else(transaction: Transaction, count: int) -> None:
    """Twelve more may be a digest of a version that nobody knows, which says nothing."""
    written = body(transaction)
    for wrong in (written[:-count], written + bytes(count)):
        try:
            assert decode(wrong) != transaction or len(wrong) == len(written) + 12
        except (Damaged, FormatTooNew):
            continue


@given(st.binary(max_size=200))
def test_any_bytes_are_a_transaction_or_damaged(noise: bytes) -> None:
    for kind in (1, 2, 5, 7, 13, 14, 15, 16, 19, 20, 21, -1, -10, -11, 99):
        try:
            decode(bytes(28) + kind.to_bytes(4, signed=True) + noise)
        except (Damaged, FormatTooNew):
            continue


@given(st.lists(drawn.transactions(), max_size=8))
def test_a_log_says_whether_its_transactions_have_digests(drawn_ones: list[Transaction]) -> None:
    ordered = [each._replace(zxid=number) for number, each in enumerate(drawn_ones, 1)]
    telling = [each.digest is not None for each in ordered if each.kind != -1]
    found = txnlog.scan(io.BytesIO(log_of(record(body(each)) for each in ordered)))
    assert found.with_digests == (bool(telling) and telling[0])
    assert [
        decode(each) for each in txnlog.bodies(io.BytesIO(log_of(record(body(each)) for each in ordered)))
    ] == ordered


def test_a_multi_in_a_multi_is_refused() -> None:
    """No server writes one, and it could be as deep as the file is long."""
    inner = (0).to_bytes(4)
    outer = (1).to_bytes(4) + (14).to_bytes(4) + len(inner).to_bytes(4) + inner
    with pytest.raises(FormatTooNew, match="unknown kind"):
        decode(bytes(28) + (14).to_bytes(4) + outer)
