"""Which credentials are in force after a metadata log; golden bytes as a controller wrote them."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkeep.errors import Damaged, FormatTooNew
from logkeep.formats.kafka.internal_topics.scram_records import ScramCredential, ScramFold

_BEGIN, _END, _ABORT = b"\x01\x17\x00\x00", b"\x01\x18\x00\x00", b"\x01\x19\x00\x00"
_OTHER = b"\x01\x14\x00\x00"
BOB = ScramCredential("bob", "SCRAM-SHA-256", b"salt", b"stored", b"server", 4096)
GOLDEN = bytes.fromhex("010b0004626f62010573616c740773746f726564077365727665720000100000")


def _set(user: str = "bob", iterations: int = 4096) -> bytes:
    name = user.encode()
    return GOLDEN[:3] + bytes([len(name) + 1]) + name + GOLDEN[7:-5] + iterations.to_bytes(4, "big") + b"\0"


def _removed(user: str) -> bytes:
    return b"\x01\x16\x00" + bytes([len(user) + 1]) + user.encode() + b"\x01\x00"


def _after(*values: bytes) -> tuple[ScramCredential, ...]:
    fold = ScramFold()
    for value in values:
        fold.add(value)
    return fold.credentials()


def test_set_changed_and_removed() -> None:
    assert _after(GOLDEN) == (BOB,)
    assert _after(_OTHER, GOLDEN, _set("ann"), _removed("bob"))[0].user == "ann"
    assert [c.iterations for c in _after(GOLDEN, _set(iterations=9000))] == [9000]
    assert _after(GOLDEN, _removed("bob"), _removed("bob")) == ()


def test_a_metadata_transaction_counts_as_a_whole() -> None:
    assert _after(_BEGIN, GOLDEN, _END) == (BOB,)
    assert _after(_BEGIN, GOLDEN, _ABORT) == ()
    assert _after(_BEGIN, GOLDEN) == (), "not decided yet"
    assert _after(GOLDEN, _BEGIN, _removed("bob"), _ABORT) == (BOB,)


def test_a_later_version_is_not_guessed() -> None:
    with pytest.raises(FormatTooNew):
        _after(b"\x01\x0b\x01" + GOLDEN[3:])
    with pytest.raises(Damaged):
        _after(b"\x02" + GOLDEN[1:])


def test_a_credential_does_not_show_itself() -> None:
    assert "stored" not in repr(BOB)
    assert "salt" not in repr(BOB)


@given(st.binary(max_size=60), st.integers(0, len(GOLDEN)))
def test_any_bytes_end_in_a_value_or_in_damage(noise: bytes, cut: int) -> None:
    with suppress(Damaged, FormatTooNew):
        _after(GOLDEN[:cut] + noise)
