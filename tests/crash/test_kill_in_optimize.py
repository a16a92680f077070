"""`optimize` killed after every store call: all backups verify, are merged by the next run, and survive collection."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from logkeep.engine.inline import InlineEngine
from logkeep.kafka.merge import optimizing
from logkeep.model.ids import BackupId
from logkeep.model.time import random_token, utc_now
from logkeep.repository.access import create_repository
from logkeep.repository.backups.verdicts import GOOD
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.format import StoreFacts
from logkeep.repository.chain.owner import this_process
from logkeep.repository.chain.write_session import writing
from logkeep.repository.upkeep.garbage import collect
from logkeep.repository.upkeep.merge_plan import MergeRule
from logkeep.repository.upkeep.optimize import Optimized
from logkeep.repository.verify.run import Verifier
from logkeep.store.local.store import LocalStore
from tests.crash.points import AT_ONCE, KILLED, in_child
from tests.crash.seeds import seeded_part
from tests.support.faults.plan import KillAfter, no_faults
from tests.support.faults.store import FaultyStore
from tests.support.kafka.many_small_backups import Cuts, expected, log_objects, read_back, take_round

ROUNDS: tuple[Cuts, ...] = tuple({0: (2 * (r // 4), 4 + 4 * r), 1: (0, 2 + 2 * r)} for r in range(5))
RULE = MergeRule(1 << 20)


def optimize(place: SourceRef) -> Optimized:
    return optimizing(place, utc_now, random_token).run(RULE, lambda _: InlineEngine())


class Prepared:
    """Five small backups of two logs, one of whose starts moves on."""

    def __init__(self, root: Path) -> None:
        self.root = root / "prepared"
        store = LocalStore(self.root)
        store.create()
        self.id = create_repository(store, StoreFacts(True, True, True), utc_now(), random_token).document.repository
        self.backups = {take_round(self.place(self.root), cuts): cuts for cuts in ROUNDS}

    def place(self, root: Path) -> SourceRef:
        return SourceRef(LocalStore(root), self.id, "prod")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return Prepared(tmp_path_factory.mktemp("optimize"))


def _calls(prepared: Prepared, to: Path) -> int:
    shutil.copytree(prepared.root, to)
    counted = FaultyStore(LocalStore(to), no_faults)
    done = optimize(SourceRef(counted, prepared.id, "prod"))
    assert (done.objects_before, done.objects_after) == (9, 2), "one round met nothing but a hole"
    _whole(prepared.place(to), prepared.backups)
    return len(counted.calls)


def _whole(place: SourceRef, backups: Mapping[int, Cuts]) -> None:
    verifier = Verifier(place, InlineEngine(), this_process("verify"), utc_now, random_token)
    for backup_id, cuts in backups.items():
        assert read_back(place, backup_id) == expected(cuts), f"backup {backup_id} does not read back"
        verified = verifier.verify(BackupId(backup_id), "data")
        assert verified.document.verdict == GOOD, verified.findings


def _killed(prepared: Prepared, directory: Path, points: list[int]) -> None:
    for k in points:
        root = directory / str(k)
        shutil.copytree(prepared.root, root)
        victim = SourceRef(FaultyStore(LocalStore(root), KillAfter(k)), prepared.id, "prod")
        assert in_child(lambda v=victim: optimize(v)) == KILLED, f"call {k} was never made"  # type: ignore[misc]  # bound now
        place = prepared.place(root)
        _whole(place, prepared.backups)
        optimize(place)
        later = {0: (4, 40), 1: (0, 20)}
        kept = {**prepared.backups, take_round(place, later): later}
        with writing(place, "gc", utc_now, random_token) as session:
            collect(session, AT_ONCE)
        assert len(log_objects(place)) == 4, f"killed after call {k}, it was not brought to its end"
        _whole(place, kept)
        shutil.rmtree(root)


def test_killed_at_a_part_of_the_store_calls(prepared: Prepared, tmp_path: Path) -> None:
    points = list(range(1, _calls(prepared, tmp_path / "counted") + 1))
    _killed(prepared, tmp_path, seeded_part("optimize", points, 16))


@pytest.mark.soak
def test_killed_after_every_store_call(prepared: Prepared, tmp_path: Path) -> None:
    calls = _calls(prepared, tmp_path / "counted")
    _killed(prepared, tmp_path, list(range(1, calls + 1)))
    print(f"optimize: killed after each of {calls} store calls, all backups intact")
