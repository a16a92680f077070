"""Which versions of ZooKeeper a test is tried with: the oldest and the newest every day, the others in the long run."""

from typing import Any

import pytest

from logkeep.embedded.zookeeper import RELEASES

MATRIX = ("3.4.14", "3.6.4", "3.9.5")
"""Those that are tried with everything."""


def versions(tried: tuple[str, ...] = RELEASES, everyday: tuple[str, ...] = (RELEASES[0], RELEASES[-1])) -> list[Any]:
    """As parameters of a test or a fixture."""
    return [pytest.param(each, marks=() if each in everyday else pytest.mark.soak) for each in tried]
