"""A CRC-32C that is derived from the one before equals the one that reads everything, for any change of any length."""

import google_crc32c
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from logkeep.formats.seal_kernels import doublings, sealed_again
from tests.property.untimed import many

DOUBLED = doublings()
BEHIND = st.one_of(st.binary(max_size=300), st.integers(0, 70_000).map(bytes))


@many
@given(st.binary(min_size=40, max_size=40), st.binary(min_size=40, max_size=40), BEHIND)
def test_only_what_changed_is_read(old: bytes, new: bytes, behind: bytes) -> None:
    before, after = (np.frombuffer(each, np.uint8).reshape(1, -1) for each in (old, new))
    crcs = np.array([google_crc32c.value(old + behind)], np.uint32)
    (found,) = sealed_again(before, after, np.array([len(behind)]), crcs, DOUBLED).tolist()
    assert found == google_crc32c.value(new + behind)


def test_a_very_large_batch() -> None:
    behind = bytes(3) + b"\xff" * ((1 << 24) + 5)
    old, new = (np.full((1, 40), byte, np.uint8) for byte in (1, 254))
    crcs = np.array([google_crc32c.value(old.tobytes() + behind)], np.uint32)
    (found,) = sealed_again(old, new, np.array([len(behind)]), crcs, DOUBLED).tolist()
    assert found == google_crc32c.value(new.tobytes() + behind)
