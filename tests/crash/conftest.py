"""Servers and processes that the crash suites share, one each per worker."""

from collections.abc import Iterator

import pytest

from tests.crash.forker import Forker, forker
from tests.support.decoded_parts import decoded_once
from tests.support.servers.s3 import S3Server, seaweed


@pytest.fixture(scope="session")
def seaweed_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with seaweed(tmp_path_factory.mktemp("s3")) as server:
        server.make_bucket("crash")
        yield server


@pytest.fixture(scope="session")
def forks() -> Iterator[Forker]:
    with forker() as opened:
        yield opened


@pytest.fixture(scope="module", autouse=True)
def parts_decoded_once() -> Iterator[None]:
    with decoded_once():
        yield
