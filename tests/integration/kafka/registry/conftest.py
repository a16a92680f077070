"""The recorded answers of a real Apicurio 3.3.3; with LOGKEEP_REGISTRY_HOME (`make registry`) it is started and
recorded anew."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from tests.support.servers.apicurio import HOME, Apicurio
from tests.support.servers.recorded_registry import RecordedRegistry, recorded, recording

Prepare = Callable[[str], None]
Answers = Callable[..., AbstractContextManager[RecordedRegistry]]


@pytest.fixture
def apicurio(tmp_path: Path) -> Answers:
    """`apicurio(name, prepare)`: an empty registry that `prepare` filled, by its recorded answers."""

    @contextmanager
    def answers(name: str, prepare: Prepare = lambda _url: None) -> Iterator[RecordedRegistry]:
        if HOME not in os.environ:
            with recorded(name) as registry:
                yield registry
            return
        with Apicurio(tmp_path / name) as live:
            prepare(live.url)
            with recording(live.url, name) as registry:
                yield registry

    return answers
