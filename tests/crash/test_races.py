"""Two writers on one source, over and over: exactly one commits each generation, the other is told, nothing is lost.

Twenty races of each kind on each store in `make test`, two hundred in `make soak`; the counts are printed.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from logkeep.errors import CommitConflict
from logkeep.model.time import random_token, utc_now
from logkeep.repository.access import create_repository
from logkeep.repository.chain import layout
from logkeep.repository.chain.actions import HoldAction, ReleaseAction
from logkeep.repository.chain.commits import SourceRef, append, read_chain, read_whole_chain
from logkeep.repository.chain.fold import Folded
from logkeep.repository.chain.format import StoreFacts
from logkeep.store.access import open_store
from logkeep.store.local.store import LocalStore
from tests.crash.forker import Forker, Job
from tests.crash.points import run_backup
from tests.support.scripted.backup import expected, restored
from tests.support.servers.s3 import ENVIRONMENT, S3Server

FEW, MANY = 20, 200
WON, LOST = "committed", "conflict"


class Arena:
    """A repository with one backup, opened by its URL as any process would."""

    def __init__(self, url: str) -> None:
        self.url = url
        store = open_store(url)
        self.repository = create_repository(store, StoreFacts(True, True, True), utc_now(), random_token).document
        self.place = SourceRef(store, self.repository.repository, "prod")
        self.first = run_backup(self.place, {0: 3})


def local_arena(root: Path) -> Arena:
    store = LocalStore(root / "repository")
    store.create()
    return Arena(store.url)


@pytest.fixture
def arena(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Arena]:
    if request.param == "local":
        yield local_arena(tmp_path)
    else:
        server: S3Server = request.getfixturevalue("seaweed_server")
        yield Arena(server.url("crash", f"race-{random_token()}"))


def raw_chain_races(arena: Arena, rounds: int, _forks: Forker) -> Counter[str]:
    """Two threads that read the same head append at a barrier, each on its own connection."""
    counts = Counter[str]()
    with ThreadPoolExecutor(2) as pool:
        places = [SourceRef(open_store(arena.url), arena.repository.repository, "prod") for _ in range(2)]
        for round_number in range(rounds):
            folded = read_chain(arena.place)
            start = threading.Barrier(2)
            outcomes = list(pool.map(lambda p, f=folded, s=start: _append(p, f, s, arena.first), places))
            assert sorted(o for o, _ in outcomes) == [WON, LOST], f"race {round_number}: {outcomes}"
            counts.update(o for o, _ in outcomes)
            winner = next(run for outcome, run in outcomes if outcome == WON)
            head = arena.place.store.get(layout.commit("prod", folded.generation + 1), 1 << 20)
            assert winner.encode() in head, "the commit in the chain is not the winner's"
    whole = read_whole_chain(arena.place)
    assert whole.generation == 1 + rounds, "a generation is missing or was taken twice"
    assert len(list(arena.place.store.list(layout.commits("prod")))) == 1 + rounds
    return counts


def _append(place: SourceRef, folded: Folded, start: threading.Barrier, backup_id: int) -> tuple[str, str]:
    held = folded.completed[0].hold is not None
    action = ReleaseAction(backup_id) if held else HoldAction(backup_id, "race")
    run = random_token()
    start.wait()
    try:
        append(place, folded, action, run=run, nonce=random_token(), now=utc_now())
    except CommitConflict:
        return LOST, run
    return WON, run


def whole_backup_races(arena: Arena, rounds: int, forks: Forker) -> Counter[str]:
    """Two processes back the same source up at one moment: each completes, or is told that the source is locked."""
    counts, ends, done = Counter[str](), {0: 3}, {arena.first: {0: 3}}
    generations = [read_chain(arena.place).completed[0].generation]
    for round_number in range(rounds):
        ends = {0: ends[0] + 1}
        arguments = {"url": arena.url, "repository": arena.repository.repository, "ends": ends}
        job = Job("tests.crash.victims:back_up", {**arguments, "environment": ENVIRONMENT})
        results = [end.result for end in forks.together([job, job])]
        completed = [r for r in results if "id" in r]
        told = [r for r in results if r.get("error") == "Locked"]
        assert len(completed) + len(told) == 2, f"race {round_number}: {results}"
        assert completed, f"race {round_number}: nobody got the source: {results}"
        assert len({r["id"] for r in completed} - set(done)) == len(completed), "an id was given twice"
        done |= {r["id"]: dict(ends) for r in completed}
        generations += [r["generation"] for r in completed]
        counts.update([*("completed" for _ in completed), *("locked" for _ in told)])
    assert len(set(generations)) == len(generations), "a generation was given twice"
    assert sorted(e.id for e in read_whole_chain(arena.place).completed) == sorted(done), "a backup was lost"
    for backup_id, content in done.items():
        assert restored(arena.place, backup_id) == expected(content)
    return counts


Race = Callable[[Arena, int, Forker], "Counter[str]"]
ON_BOTH = pytest.mark.parametrize(
    "arena",
    [
        pytest.param("local", marks=pytest.mark.xdist_group("local-races")),
        pytest.param("seaweed", marks=pytest.mark.xdist_group("seaweed-faults")),
    ],
    indirect=True,
)
RACES = pytest.mark.parametrize("race", (raw_chain_races, whole_backup_races))


def run(arena: Arena, race: Race, rounds: int, forks: Forker) -> None:
    counts = race(arena, rounds, forks)
    print(f"{race.__name__} on {arena.url.partition(':')[0]}: {rounds} races, {dict(counts)}, 0 lost")


@RACES
@ON_BOTH
def test_twenty_races(arena: Arena, race: Race, forks: Forker) -> None:
    run(arena, race, FEW, forks)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@RACES
@ON_BOTH
def test_two_hundred_races(arena: Arena, race: Race, forks: Forker) -> None:
    run(arena, race, MANY, forks)
