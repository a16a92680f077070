"""Every other operation that changes a repository, killed after every single store call, then repeated to its end.

Whatever was under way: the backups that were to be kept read back, and the repository can be used as before.
"""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from logkeep.engine.inline import InlineEngine
from logkeep.errors import LogkeepError
from logkeep.model.ids import BackupId
from logkeep.model.time import random_token, utc_now
from logkeep.repository.access import create_repository
from logkeep.repository.backups.source import read_facts
from logkeep.repository.backups.verdicts import GOOD
from logkeep.repository.chain import layout
from logkeep.repository.chain.actions import HoldAction, ReleaseAction
from logkeep.repository.chain.commits import SourceRef, read_chain, read_whole_chain
from logkeep.repository.chain.format import StoreFacts, open_format
from logkeep.repository.chain.owner import this_process
from logkeep.repository.chain.write_session import pin, writing
from logkeep.repository.upkeep.garbage import collect
from logkeep.repository.upkeep.prune import delete
from logkeep.repository.upkeep.repair import repair, repair_format
from logkeep.repository.verify.run import Verifier
from logkeep.store.local.store import LocalStore
from tests.crash.points import AT_ONCE, KILLED, in_child, run_backup
from tests.crash.seeds import seeded_part
from tests.support.faults.plan import KillAfter, no_faults
from tests.support.faults.store import FaultyStore
from tests.support.scripted.backup import Ends, expected, restored

ENDS: tuple[Ends, ...] = ({0: 6, 1: 3}, {0: 9, 1: 8}, {0: 14, 1: 8, 2: 5})
LATER = {0: 16, 1: 9, 2: 5}


@dataclass(frozen=True)
class Operation:
    """What is killed, what must hold before it is repeated, and what it must have reached at the end."""

    run: Callable[[SourceRef, list[int]], object]
    kept: tuple[int, ...]
    """Which of the three backups are to be there, at any time."""
    reached: Callable[[SourceRef, list[int]], bool]
    spoil: Callable[[Path], object] = lambda _root: None
    readable_meanwhile: bool = True
    """False: it mends what keeps readers out; they come back when it has been repeated."""


def prune(place: SourceRef, ids: list[int]) -> None:
    """As the command does it: decide on what is there, delete by one commit, collect at once."""
    with writing(place, "prune", utc_now, random_token) as session:
        gone = [i for i in (ids[0], ids[2]) if session.folded.entry(i)]
        delete(session, gone, "policy")
        collect(session, AT_ONCE)


def pruned(place: SourceRef, ids: list[int]) -> bool:
    objects = {i.name for i in place.store.list(layout.source_root("prod"))}
    return [e.id for e in read_chain(place).completed] == [ids[1]] and not any("partition=2" in n for n in objects)


def mend(place: SourceRef, _ids: list[int]) -> None:
    repair(place, utc_now, random_token, timedelta(minutes=5), accept_loss=True, dry_run=False)


def mended(place: SourceRef, ids: list[int]) -> bool:
    facts = read_facts(place)
    whole = [e.id for e in read_chain(place).completed] == ids and read_chain(place) == read_whole_chain(place)
    return whole and facts is not None and facts.identity == {"id": "s-1"}


def mend_format(place: SourceRef, _ids: list[int]) -> None:
    list(repair_format(place.store, open_format(place.store).document, dry_run=False))


def has_both_formats(place: SourceRef, _ids: list[int]) -> bool:
    return not open_format(place.store).warnings


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x10
    path.write_bytes(data)


def lose_caches(root: Path) -> None:
    (root / layout.source_document("prod")).unlink()
    flip(next(iter(sorted(root.glob("sources/prod/checkpoints/*.json")))))
    flip(root / layout.lease("prod"))


def verify(place: SourceRef, ids: list[int]) -> None:
    verifier = Verifier(place, InlineEngine(), this_process(random_token()), utc_now, random_token)
    assert verifier.verify(BackupId(ids[1]), "data").document.verdict == GOOD


def is_held(place: SourceRef, ids: list[int]) -> bool:
    return read_chain(place).completed[0].hold == "audit"


ALL = (0, 1, 2)
OPERATIONS = {
    "prune": Operation(prune, (1,), pruned),
    "repair of caches": Operation(mend, ALL, mended, lose_caches),
    "repair of a lost commit": Operation(
        mend, ALL, mended, lambda root: (root / layout.commit("prod", 2)).unlink(), readable_meanwhile=False
    ),
    "repair of a spoiled commit": Operation(
        mend, ALL, mended, lambda root: flip(root / layout.commit("prod", 3)), readable_meanwhile=False
    ),
    "repair of the format": Operation(
        mend_format,
        ALL,
        has_both_formats,
        lambda root: flip(root / layout.FORMAT),
    ),
    "hold": Operation(lambda place, ids: pin(place, HoldAction(ids[0], "audit"), utc_now, random_token), ALL, is_held),
    "release": Operation(
        lambda place, ids: pin(place, ReleaseAction(ids[0]), utc_now, random_token),
        ALL,
        lambda place, ids: not is_held(place, ids),
    ),
    "verify": Operation(verify, ALL, lambda place, _: bool(list(place.store.list(layout.verifications("prod"))))),
}


class Prepared:
    """Three backups, a failed one, a checkpoint; the first of them pinned for `release`."""

    def __init__(self, root: Path) -> None:
        self.root = root / "prepared"
        store = LocalStore(self.root)
        store.create()
        self.id = create_repository(store, StoreFacts(True, True, True), utc_now(), random_token).document.repository
        place = self.place(self.root)
        self.ids = [run_backup(place, ends) for ends in ENDS]
        with writing(place, "gc", utc_now, random_token) as session:
            session.fence("checkpoint")

    def place(self, root: Path) -> SourceRef:
        return SourceRef(LocalStore(root), self.id, "prod")

    def copy(self, name: str, operation: Operation, to: Path) -> Path:
        shutil.copytree(self.root, to)
        if name == "release":
            pin(self.place(to), HoldAction(self.ids[0], "audit"), utc_now, random_token)
        operation.spoil(to)
        return to

    def content(self, operation: Operation) -> dict[int, Ends]:
        return {self.ids[i]: ENDS[i] for i in operation.kept}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return Prepared(tmp_path_factory.mktemp("operations"))


def check_readable(place: SourceRef, kept: Mapping[int, Ends]) -> None:
    for backup_id, ends in kept.items():
        assert restored(place, backup_id) == expected(ends), f"backup {backup_id} does not read back"


@pytest.mark.parametrize("name", OPERATIONS)
def test_killed_at_a_part_of_the_store_calls_and_repeated(prepared: Prepared, tmp_path: Path, name: str) -> None:
    points = list(range(1, count_calls(prepared, tmp_path, name) + 1))
    killed_and_repeated(prepared, tmp_path, name, seeded_part(name, points, 8))


@pytest.mark.soak
@pytest.mark.parametrize("name", OPERATIONS)
def test_killed_after_every_store_call_and_repeated(prepared: Prepared, tmp_path: Path, name: str) -> None:
    calls = count_calls(prepared, tmp_path, name)
    killed_and_repeated(prepared, tmp_path, name, list(range(1, calls + 1)))
    print(f"{name}: killed after each of {calls} store calls, repeated, all kept backups intact")


def count_calls(prepared: Prepared, tmp_path: Path, name: str) -> int:
    """How many store calls the operation makes when nothing happens to it."""
    operation = OPERATIONS[name]
    counted = FaultyStore(LocalStore(prepared.copy(name, operation, tmp_path / "counted")), no_faults)
    operation.run(SourceRef(counted, prepared.id, "prod"), prepared.ids)
    assert operation.reached(prepared.place(tmp_path / "counted"), prepared.ids)
    return len(counted.calls)


def killed_and_repeated(prepared: Prepared, tmp_path: Path, name: str, points: list[int]) -> None:
    operation = OPERATIONS[name]
    kept = prepared.content(operation)
    for k in points:
        root = prepared.copy(name, operation, tmp_path / str(k))
        victim = SourceRef(FaultyStore(LocalStore(root), KillAfter(k)), prepared.id, "prod")
        assert in_child(lambda v=victim: operation.run(v, prepared.ids)) == KILLED, f"call {k} was never made"  # type: ignore[misc]  # bound now
        place = prepared.place(root)
        if operation.readable_meanwhile:
            check_readable(place, kept)
        operation.run(place, prepared.ids)
        assert operation.reached(place, prepared.ids), f"killed after call {k}, it was not brought to its end"
        check_readable(place, kept)
        _goes_on(place, kept)
        shutil.rmtree(root)


def _goes_on(place: SourceRef, kept: Mapping[int, Ends]) -> None:
    """The repository takes the next backup, and garbage collection leaves all of them alone."""
    later = {**kept, run_backup(place, LATER): LATER}
    with writing(place, "gc", utc_now, random_token) as session:
        collect(session, AT_ONCE)
    check_readable(place, later)


def test_operations_fail_with_our_own_errors_only(prepared: Prepared, tmp_path: Path) -> None:
    """The suite would not notice an operation that does nothing: a prune without a lease must fail."""
    root = prepared.copy("prune", OPERATIONS["prune"], tmp_path / "held")
    with (
        writing(prepared.place(root), "other", utc_now, random_token),
        pytest.raises(LogkeepError, match="holds the source"),
    ):
        prune(prepared.place(root), prepared.ids)
