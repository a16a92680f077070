"""Hostile archives of other tools: no crash, no index out of its array, no hang, and little memory."""

import pytest

from tests.property.test_datasets_fuzz import _run

pytestmark = pytest.mark.xdist_group("checked-kernels")


@pytest.mark.parametrize("count", [2_000, pytest.param(20_000, marks=pytest.mark.soak)])
def test_no_index_leaves_its_array(count: int) -> None:
    """Half of them for each reader."""
    readable, grown_mib = _run("tests.property.fuzzed_archives", str(count), "7")
    assert count // 10 < readable < count * 9 // 10, "some inputs must be refused, and some must not be"
    assert grown_mib < 64
