"""`kafka fold` killed after every store call: every backup restores as before, and the next fold completes it."""

import shutil
from pathlib import Path

import pytest

from logkeep.engine.inline import InlineEngine
from logkeep.kafka.logs.batch_check import check_logs
from logkeep.model.ids import BackupId
from logkeep.model.time import random_token, utc_now
from logkeep.repository.access import create_repository
from logkeep.repository.backups.verdicts import GOOD
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.format import StoreFacts
from logkeep.repository.chain.owner import this_process
from logkeep.repository.chain.write_session import writing
from logkeep.repository.upkeep.garbage import collect
from logkeep.repository.verify.run import Verifier
from logkeep.store.local.store import LocalStore
from tests.crash.points import AT_ONCE, KILLED, in_child
from tests.crash.seeds import seeded_part
from tests.crash.victims import fold_all
from tests.support.faults.plan import KillAfter, no_faults
from tests.support.faults.store import FaultyStore
from tests.support.kafka.compacted_backups import CompactedSource


class Prepared:
    """Three backups of two partitions of a compacted topic, with aborted and buried records."""

    def __init__(self, root: Path) -> None:
        self.root = root / "prepared"
        store = LocalStore(self.root)
        store.create()
        facts = StoreFacts(put_new=True, replace=True, durable=True)
        self.id = create_repository(store, facts, utc_now(), random_token).document.repository
        source = CompactedSource(self.place(self.root), partitions=2)
        for number in range(3):
            for partition in (0, 1):
                source.write([(b"k%d" % (n % 3), b"%d.%d" % (number, n)) for n in range(9)], partition)
                source.transaction([(b"k1", b"aborted")], 7, False, partition)
                source.write([(b"gone", b"x"), (b"last", b"%d" % number)], partition)
            source.back_up(bury_offsets=[10] if number == 2 else ())
        self.latest = source.all_latest()

    def place(self, root: Path) -> SourceRef:
        return SourceRef(LocalStore(root), self.id, "prod")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return Prepared(tmp_path_factory.mktemp("fold"))


def whole(prepared: Prepared, place: SourceRef) -> None:
    assert CompactedSource(place, partitions=2).all_latest() == prepared.latest
    verifier = Verifier(place, InlineEngine(), this_process("verify"), utc_now, random_token, check_logs)
    for entry in read_chain(place).completed:
        verified = verifier.verify(BackupId(entry.id), "data")
        assert verified.document.verdict == GOOD, verified.findings


def _calls(prepared: Prepared, to: Path) -> int:
    shutil.copytree(prepared.root, to)
    counted = FaultyStore(LocalStore(to), no_faults)
    assert fold_all(SourceRef(counted, prepared.id, "prod")) == 2
    whole(prepared, prepared.place(to))
    return len(counted.calls)


def _killed(prepared: Prepared, directory: Path, points: list[int]) -> None:
    for k in points:
        root = directory / str(k)
        shutil.copytree(prepared.root, root)
        victim = SourceRef(FaultyStore(LocalStore(root), KillAfter(k)), prepared.id, "prod")
        assert in_child(lambda v=victim: fold_all(v)) == KILLED, f"call {k} was never made"  # type: ignore[misc]  # bound now
        place = prepared.place(root)
        whole(prepared, place)
        fold_all(place)
        assert len(read_chain(place).folded_logs()) == 2
        with writing(place, "gc", utc_now, random_token) as session:
            collect(session, AT_ONCE)
            collect(session, AT_ONCE)
        whole(prepared, place)
        shutil.rmtree(root)


def test_killed_at_a_part_of_the_store_calls(prepared: Prepared, tmp_path: Path) -> None:
    points = list(range(1, _calls(prepared, tmp_path / "counted") + 1))
    _killed(prepared, tmp_path, seeded_part("fold", points, 8))


@pytest.mark.soak
def test_killed_after_every_store_call(prepared: Prepared, tmp_path: Path) -> None:
    calls = _calls(prepared, tmp_path / "counted")
    _killed(prepared, tmp_path, list(range(1, calls + 1)))
    print(f"fold: killed after each of {calls} store calls, all backups intact")
