"""A filled repository for every test: made once, copied each time."""

from pathlib import Path

import pytest

from tests.support.cli.filled_repository import Filled, copied, fill


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Filled:
    return fill(tmp_path_factory.mktemp("original"))


@pytest.fixture
def repo(original: Filled, tmp_path: Path) -> Filled:
    return copied(original, tmp_path / "home")
