"""One real server for all tests of a module that do not change it; its home is its own in each test."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.cli.zkbackup_server import Served, served


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("shop")) as shop:
        shop.fill("/shop", 50)
        shop.begin_log()
        shop.fill("/shop/more", 50)
        shop.begin_log()
        shop.fill("/shop/most", 50)
        yield shop


@pytest.fixture
def shop(running: Served, tmp_path: Path) -> Served:
    """The server, with an empty home and no backups."""
    return replace(running, home=tmp_path)
