"""A repair of ZooKeeper backups killed after its store calls: backups are served by the old objects or by the new ones.

The same for a backup that copies damaged pieces again on its way. Then it is run again, and everything is whole.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from logkeep.engine.inline import InlineEngine
from logkeep.model.ids import BackupId
from logkeep.model.time import random_token, utc_now
from logkeep.repository.backups.verdicts import DAMAGED, GOOD
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.owner import this_process
from logkeep.repository.chain.write_session import writing
from logkeep.repository.upkeep.garbage import collect
from logkeep.repository.verify.run import Verifier
from logkeep.store.local.store import LocalStore
from logkeep.zookeeper.model.archived import Member
from logkeep.zookeeper.repo.repair import RepairRun
from logkeep.zookeeper.repo.view import view_of
from logkeep.zookeeper.verify.directory_view import directory_view
from tests.crash.points import AT_ONCE, KILLED, in_child
from tests.crash.seeds import seeded_part
from tests.support.faults.plan import KillAfter, no_faults
from tests.support.faults.store import FaultyStore
from tests.support.zookeeper.handmade_directories import MadeServer
from tests.support.zookeeper.repositories import archived, bytes_of, new_local_place, newest

_SHARE = 20
Contents = list[dict[Any, bytes]]


@dataclass
class Prepared:
    """Two backups that share an object which was found damaged, and the server they are of."""

    root: Path
    server: MadeServer
    repository: str
    whole: Contents
    broken: Contents
    original: str

    def place(self, root: Path, store: Any = None) -> SourceRef:
        return SourceRef(store or LocalStore(root), self.repository, "zk")

    def repair(self, place: SourceRef) -> None:
        member = Member(
            name="zk2", data_dir=str(self.server.snapshot_dir), log_dir=str(self.server.log_dir), role="follower"
        )
        first = BackupId(read_chain(place).completed[0].id)
        RepairRun(place, utc_now, random_token, beside=(directory_view(member),)).run(first)

    def back_up(self, place: SourceRef) -> None:
        archived(place, self.server)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    directory = tmp_path_factory.mktemp("repair")
    server = MadeServer(directory / "server", zxid=8, log_apart=True)
    server.snapshot(2)
    server.log([1, 2, 3])
    server.log([4, 5, 6, 7, 8])
    place = new_local_place(directory / "prepared")
    archived(place, server)
    server.add(server.log_dir / "log.4", [9, 10])
    server.zxid = 10
    archived(place, server)
    whole, view = contents(place), newest(place)
    name = view.object_name(view.logs[1])
    path = directory / "prepared" / name
    content = bytearray(path.read_bytes())
    content[100] ^= 4
    path.chmod(0o600)
    path.write_bytes(content)
    assert verdicts(place) == [DAMAGED, DAMAGED]
    return Prepared(directory / "prepared", server, place.repository, whole, contents(place), name)


def contents(place: SourceRef) -> Contents:
    return [bytes_of(view_of(place, entry)) for entry in read_chain(place).completed]


def verdicts(place: SourceRef) -> list[str]:
    verifier = Verifier(place, InlineEngine(), this_process("verify"), utc_now, random_token)
    return [verifier.verify(BackupId(e.id), "data").document.verdict for e in read_chain(place).completed]


def kill_in(
    prepared: Prepared, directory: Path, act: Callable[[SourceRef], None], chosen: Callable[[list[int]], list[int]]
) -> int:
    shutil.copytree(prepared.root, directory / "counted")
    counting = FaultyStore(LocalStore(directory / "counted"), no_faults)
    act(prepared.place(directory / "counted", counting))
    assert contents(prepared.place(directory / "counted"))[:2] == prepared.whole
    for call in chosen(list(range(1, len(counting.calls) + 1))):
        root = directory / str(call)
        shutil.copytree(prepared.root, root)
        victim = prepared.place(root, FaultyStore(LocalStore(root), KillAfter(call)))
        assert in_child(lambda v=victim: act(v)) == KILLED, call  # type: ignore[misc]  # bound now
        place = prepared.place(root)
        assert contents(place)[:2] in (prepared.broken, prepared.whole), call
        act(place)
        with writing(place, "gc", utc_now, random_token) as session:
            collect(session, AT_ONCE)
        assert contents(place)[:2] == prepared.whole, call
        assert set(verdicts(place)) == {GOOD}, call
        assert place.store.head(prepared.original).size, "a repair destroys no evidence"
        shutil.rmtree(root)
    return len(counting.calls)


def a_share(calls: list[int]) -> list[int]:
    return seeded_part("zookeeper repair", calls, _SHARE)


@pytest.mark.parametrize("act", [Prepared.repair, Prepared.back_up])
def test_killed_at_a_part_of_the_store_calls(
    prepared: Prepared, tmp_path: Path, act: Callable[[Prepared, SourceRef], None]
) -> None:
    kill_in(prepared, tmp_path, lambda place: act(prepared, place), a_share)


@pytest.mark.soak
@pytest.mark.parametrize("act", [Prepared.repair, Prepared.back_up])
def test_killed_after_every_store_call(
    prepared: Prepared, tmp_path: Path, act: Callable[[Prepared, SourceRef], None]
) -> None:
    calls = kill_in(prepared, tmp_path, lambda place: act(prepared, place), list)
    print(f"zookeeper repair: killed after each of {calls} store calls, all backups intact")
