"""A CRC-32C that is derived from the one before equals the one that reads everything, for any change of any length."""

import google_crc32c
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from logkeep.formats.kafka.header_crc import changed_crc
from logkeep.formats.kafka.record_kernels import Bytes
from tests.property.untimed import many

BEHIND = st.one_of(st.binary(max_size=300), st.integers(0, 70_000).map(bytes))


def _bytes(plain: bytes) -> Bytes:
    return np.frombuffer(plain, np.uint8)


@many
@given(st.binary(min_size=40, max_size=40), st.binary(min_size=40, max_size=40), BEHIND)
def test_only_what_changed_is_read(old: bytes, new: bytes, behind: bytes) -> None:
    found = changed_crc(google_crc32c.value(old + behind), _bytes(old), _bytes(new), len(behind))
    assert found == google_crc32c.value(new + behind)


def test_a_very_large_batch() -> None:
    old, new, behind = bytes([1] * 40), bytes([254] * 40), bytes(3) + b"\xff" * ((1 << 24) + 5)
    found = changed_crc(google_crc32c.value(old + behind), _bytes(old), _bytes(new), len(behind))
    assert found == google_crc32c.value(new + behind)
