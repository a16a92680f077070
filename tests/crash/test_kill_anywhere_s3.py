"""A backup into a real S3 server, killed after every store call, and with every answer lost.

`make test` takes a seeded tenth of the points, `make soak` all of them.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

import pytest

from logkeep.model.time import random_token, utc_now
from logkeep.repository.access import create_repository
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.format import StoreFacts
from logkeep.store.access import open_store
from logkeep.store.base import Store
from tests.crash.forker import End, Forker
from tests.crash.points import check_after, run_backup
from tests.crash.seeds import seeded_part
from tests.crash.victims import ANSWER_LOST, KILLED_AFTER, NO_FAULT
from tests.support.servers.s3 import ENVIRONMENT, S3Server

pytestmark = pytest.mark.xdist_group("seaweed-faults")
FIRST, SECOND, THIRD = {0: 6, 1: 3}, {0: 9, 1: 8}, {0: 14, 1: 8, 2: 5}


class Prepared:
    """A repository with two backups, kept as bytes: every point gets its own copy under a prefix of its own."""

    def __init__(self, server: S3Server, forks: Forker) -> None:
        self._server, self._forks = server, forks
        store = self._store("prepared")
        self.id = create_repository(store, StoreFacts(True, True, True), utc_now(), random_token).document.repository
        self.before = {run_backup(SourceRef(store, self.id, "prod"), e): e for e in (FIRST, SECOND)}
        self._objects = {i.name: store.get(i.name, 1 << 20) for i in store.list("")}
        self.copy("counted")
        self.calls = int(self.victim("counted", NO_FAULT, 0).result["calls"])

    def copy(self, prefix: str) -> SourceRef:
        """The repository once more, and as few round trips at a time as the server likes."""
        store = self._store(prefix)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda item: store.put_new(*item), self._objects.items()))
        return SourceRef(store, self.id, "prod")

    def victim(self, prefix: str, fault: str, call: int) -> End:
        return self._forks.run(
            "tests.crash.victims:back_up",
            url=self._server.url("crash", prefix),
            repository=self.id,
            ends=THIRD,
            fault=fault,
            call=call,
            environment=ENVIRONMENT,
        )

    def _store(self, prefix: str) -> Store:
        return open_store(self._server.url("crash", prefix))


@pytest.fixture(scope="module")
def prepared(seaweed_server: S3Server, forks: Forker) -> Prepared:
    return Prepared(seaweed_server, forks)


def killed_after(prepared: Prepared, points: Iterable[int]) -> int:
    done = 0
    for call in points:
        place = prepared.copy(f"kill-{call}")
        assert prepared.victim(f"kill-{call}", KILLED_AFTER, call).killed, f"call {call} was never made"
        check_after(place, prepared.before, THIRD)
        done += 1
    return done


def answers_lost(prepared: Prepared, points: Iterable[int]) -> int:
    done = 0
    for call in points:
        place = prepared.copy(f"lost-{call}")
        end = prepared.victim(f"lost-{call}", ANSWER_LOST, call)
        assert "id" in end.result, f"a lost answer to call {call} was not survived: {end}"
        check_after(place, prepared.before, THIRD)
        done += 1
    return done


Experiment = Callable[[Prepared, Iterable[int]], int]
EXPERIMENTS = pytest.mark.parametrize("experiment", (killed_after, answers_lost))


@EXPERIMENTS
def test_at_a_part_of_the_store_calls(prepared: Prepared, experiment: Experiment) -> None:
    assert prepared.calls > 40
    points = seeded_part(f"S3, {experiment.__name__}", list(range(1, prepared.calls + 1)), 20)
    assert experiment(prepared, points) == len(points)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@EXPERIMENTS
def test_at_every_store_call(prepared: Prepared, experiment: Experiment) -> None:
    points = range(1, prepared.calls + 1)
    print(f"S3, {experiment.__name__}: {experiment(prepared, points)} of {prepared.calls} points, all intact")
