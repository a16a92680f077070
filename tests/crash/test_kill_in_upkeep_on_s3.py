"""`kafka fold`, a trim and a new generation, killed after store calls on a real S3 server: each backup is as before, or
as after.

`make test` takes a few of the points of a fold and a trim, `make soak` all of them, a generation's too.
"""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from logkeep.engine.inline import InlineEngine
from logkeep.model.time import random_token, utc_now
from logkeep.repository.access import create_repository
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.format import StoreFacts
from logkeep.store.access import open_store
from logkeep.store.memory import MemoryStore
from tests.crash import test_kill_in_fold
from tests.crash.forker import End, Forker
from tests.crash.points import run_backup
from tests.crash.seeds import seeded_part
from tests.crash.victims import KILLED_AFTER, NO_FAULT, fold_all, trim_and_collect
from tests.soak_counts import soak_count
from tests.support.kafka.generation_cycle import ROUNDS, Cycle, archived, bring_to_its_end, continued
from tests.support.scripted.backup import back_up, expected, restored
from tests.support.servers.s3 import ENVIRONMENT, S3Server

pytestmark = pytest.mark.xdist_group("seaweed-faults")
FIRST, SECOND, THIRD = {0: 9, 1: 5}, {0: 16, 1: 9}, {0: 20, 1: 9}
STARTS = {0: 13, 1: 4}
WHOLE = [expected(FIRST), expected(SECOND), expected(THIRD, STARTS)]
TRIMMED = [expected(FIRST, {0: 9, 1: 4}), expected(SECOND, STARTS), expected(THIRD, STARTS)]


@dataclass(frozen=True)
class Upkeep:
    """Work on a repository that is kept as bytes: every point gets its own copy under a prefix of its own."""

    name: str
    repository: str
    objects: Mapping[str, bytes]
    intact: Callable[[SourceRef], None]
    """Every backup, whether the work was done or not."""
    complete: Callable[[SourceRef], None]
    """Do the work, and check it."""

    def copy(self, server: S3Server, point: str) -> SourceRef:
        store = open_store(self.url(server, point))
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda item: store.put_new(*item), self.objects.items()))
        return SourceRef(store, self.repository, "prod")

    def url(self, server: S3Server, point: str) -> str:
        return server.url("crash", f"{self.name}-{point}")


@pytest.fixture(scope="module")
def folding(tmp_path_factory: pytest.TempPathFactory) -> Upkeep:
    made = test_kill_in_fold.Prepared(tmp_path_factory.mktemp("fold-on-s3"))

    def complete(place: SourceRef) -> None:
        fold_all(place)
        assert len(read_chain(place).folded_logs()) == 2
        test_kill_in_fold.whole(made, place)

    return Upkeep("fold", made.id, _files(made.root), lambda place: test_kill_in_fold.whole(made, place), complete)


@pytest.fixture(scope="module")
def trimming() -> Upkeep:
    store = MemoryStore(utc_now)
    made = create_repository(store, StoreFacts(True, True, True), utc_now(), random_token).place("prod")
    for ends in (FIRST, SECOND):
        run_backup(made, ends)
    back_up(made, THIRD, InlineEngine(), utc_now, random_token, starts=STARTS)

    def intact(place: SourceRef) -> None:
        assert _contents(place) in (WHOLE, TRIMMED)

    def complete(place: SourceRef) -> None:
        trim_and_collect(place)
        assert _contents(place) == TRIMMED

    objects = {info.name: store.get(info.name, 1 << 20) for info in store.list("")}
    return Upkeep("trim", made.repository, objects, intact, complete)


@pytest.fixture(scope="module")
def renewing() -> Upkeep:
    made = archived(Cycle(MemoryStore(utc_now), clock=utc_now, random=True))

    def complete(place: SourceRef) -> None:
        later = continued(place)
        later.end += 2 * ROUNDS
        bring_to_its_end(later)

    objects = {info.name: made.store.get(info.name, 1 << 20) for info in made.store.list("")}
    return Upkeep("generation", made.place.repository, objects, lambda place: continued(place).check(), complete)


def _contents(place: SourceRef) -> list[dict[int, bytes]]:
    return [restored(place, entry.id) for entry in read_chain(place).completed]


def _files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.fixture(params=["folding", "trimming"])
def upkeep(request: pytest.FixtureRequest) -> Upkeep:
    found: Upkeep = request.getfixturevalue(request.param)
    return found


def _victim(upkeep: Upkeep, server: S3Server, forks: Forker, call: int) -> End:
    return forks.run(
        f"tests.crash.victims:{upkeep.name}",
        url=upkeep.url(server, str(call)),
        repository=upkeep.repository,
        fault=KILLED_AFTER if call else NO_FAULT,
        call=call,
        environment=ENVIRONMENT,
    )


def _calls(upkeep: Upkeep, server: S3Server, forks: Forker) -> int:
    place = upkeep.copy(server, "0")
    calls = int(_victim(upkeep, server, forks, 0).result["calls"])
    upkeep.intact(place)
    return calls


def _killed(upkeep: Upkeep, server: S3Server, forks: Forker, points: Iterable[int]) -> int:
    done = 0
    for call in points:
        place = upkeep.copy(server, str(call))
        assert _victim(upkeep, server, forks, call).killed, f"call {call} was never made"
        upkeep.intact(place)
        upkeep.complete(place)
        done += 1
    return done


def test_at_a_few_store_calls(upkeep: Upkeep, seaweed_server: S3Server, forks: Forker) -> None:
    calls = _calls(upkeep, seaweed_server, forks)
    points = seeded_part(f"{upkeep.name} on S3", list(range(1, calls + 1)), max(calls // 4, 1))
    assert _killed(upkeep, seaweed_server, forks, points) == len(points)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_at_every_store_call(upkeep: Upkeep, seaweed_server: S3Server, forks: Forker) -> None:
    calls = _calls(upkeep, seaweed_server, forks)
    killed = _killed(upkeep, seaweed_server, forks, range(1, calls + 1))
    print(f"{upkeep.name} on S3: killed after {killed} of {calls} store calls, every backup intact")


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_generation_at_store_calls(renewing: Upkeep, seaweed_server: S3Server, forks: Forker) -> None:
    calls = _calls(renewing, seaweed_server, forks)
    points = seeded_part("generation on S3", list(range(1, calls + 1)), -(-calls // min(soak_count(calls), calls)))
    killed = _killed(renewing, seaweed_server, forks, points)
    print(f"generation on S3: killed after {killed} of {calls} store calls, every backup intact")
