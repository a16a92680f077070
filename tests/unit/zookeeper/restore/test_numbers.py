"""Zxids and epochs of restored data: above everything that was ever in use."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkeep.errors import TargetUnsafe
from logkeep.zookeeper.restore.numbers import HIGHEST_ZXID, epoch_above, highest_used, member_name, standalone_name

_ZXIDS = st.integers(0, (1 << 62) - 1)
_EPOCHS = st.integers(0, (1 << 30) - 1)


@given(st.lists(_EPOCHS), st.lists(_ZXIDS), _EPOCHS)
def test_the_epoch_is_above_all_and_the_next_one(epochs: list[int], zxids: list[int], least: int) -> None:
    found = epoch_above(epochs, zxids, least)
    used = [*epochs, *(zxid >> 32 for zxid in zxids), least, 0]
    assert found == max(used) + 1
    assert all(member_name(found) > zxid for zxid in zxids)


@given(_ZXIDS, _ZXIDS)
def test_a_lone_server_never_counts_again_what_it_had_counted(zxid: int, replaced: int) -> None:
    named = standalone_name(zxid, replaced)
    assert named >= zxid
    assert named > replaced or (named == zxid > replaced)
    assert named in (zxid, replaced + 1)


def test_an_empty_target_keeps_the_zxid() -> None:
    assert standalone_name(0x500000001, 0) == 0x500000001


def test_what_counts_as_used() -> None:
    """The end of the backup is the tree itself; the same zxid in replaced data may be another one."""
    assert highest_used(5, [0], [3, 5]) == 0
    assert highest_used(5, [0], [3, 9]) == 9
    assert highest_used(5, [5], [5]) == 5
    assert highest_used(5, [12], [9]) == 12


def test_there_is_an_end_of_numbers() -> None:
    with pytest.raises(TargetUnsafe, match="and there is none above"):
        standalone_name(1, HIGHEST_ZXID - 2)
    with pytest.raises(TargetUnsafe, match="there is none"):
        epoch_above([], [HIGHEST_ZXID], 0)
