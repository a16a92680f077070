"""One real ensemble with a past for all tests that restore it: each begins with its directories as they were."""

import pytest

from tests.support.zookeeper.stopped_ensemble import Stood, stood_up
from tests.support.zookeeper.versions import versions


@pytest.fixture(scope="session", params=versions(everyday=("3.9.5",)))
def once_stood(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Stood:
    return stood_up(tmp_path_factory.mktemp("ensemble"), request.param)


@pytest.fixture
def stood(once_stood: Stood) -> Stood:
    once_stood.again()
    return once_stood
