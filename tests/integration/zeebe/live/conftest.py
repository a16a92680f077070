"""A real Zeebe with backups in a real S3 server: started once for the tests of this directory."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.servers.s3 import seaweed
from tests.support.servers.zeebe import HOME, Zeebe
from tests.support.zeebe.live_world import BUCKET, LiveWorld
from tests.support.zeebe.store_switch import StoreSwitch


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveWorld]:
    sys.path.append(str(Path(os.environ[HOME]) / "python"))
    directory = tmp_path_factory.mktemp("zeebe")
    with seaweed(directory) as server:
        server.make_bucket(BUCKET)
        with (
            StoreSwitch(server.endpoint) as switch,
            Zeebe(directory / "first", switch.endpoint, BUCKET) as broker,
        ):
            yield LiveWorld(directory, server, switch, broker)
