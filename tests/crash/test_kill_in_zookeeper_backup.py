"""A backup of ZooKeeper killed at its steps: earlier ones as they were, the new one whole or absent; then run again."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from logkeep.model.segments import Codec
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.store.local.store import LocalStore
from logkeep.zookeeper.bundle.view import BundleView
from logkeep.zookeeper.repo.view import view_of
from tests.crash.points import DONE, KILLED, in_child
from tests.crash.seeds import seeded_part
from tests.crash.system_calls import SystemCalls
from tests.support.faults.plan import KillAfter, no_faults
from tests.support.faults.store import FaultyStore
from tests.support.zookeeper.handmade_directories import MadeServer, bundle_names, bundled, content
from tests.support.zookeeper.repositories import archived, bytes_of, new_local_place, newest

_SHARE = 10
_CALLS = ("write", "writev", "fsync", "rename", "mkdir", "unlink", "rmdir", "ftruncate", "link", "open", "utime")


def made_server(root: Path) -> MadeServer:
    server = MadeServer(root, zxid=8, log_apart=True)
    server.snapshot(2)
    server.log([1, 2, 3])
    server.log([4, 5, 6, 7, 8])
    return server


def all_of(points: int) -> list[int]:
    return list(range(1, points + 1))


def a_share_of(points: int) -> list[int]:
    return seeded_part("zookeeper backup", all_of(points), _SHARE)


def test_a_bundle_is_whole_or_absent(tmp_path: Path) -> None:
    kill_in_a_bundle(tmp_path, a_share_of)


def test_a_backup_in_a_repository_is_whole_or_absent(tmp_path: Path) -> None:
    kill_in_an_archive(tmp_path, a_share_of)


@pytest.mark.soak
def test_a_bundle_is_whole_or_absent_wherever_it_is_killed(tmp_path: Path) -> None:
    kill_in_a_bundle(tmp_path, all_of)


@pytest.mark.soak
def test_a_backup_in_a_repository_is_whole_or_absent_wherever_it_is_killed(tmp_path: Path) -> None:
    kill_in_an_archive(tmp_path, all_of)


def kill_in_a_bundle(tmp_path: Path, chosen: Callable[[int], list[int]]) -> None:
    server = made_server(tmp_path / "server")
    before, _ = bundled(server, tmp_path / "prepared", "before")
    expected = content(before)

    def run(out: Path, die_at: int, told: Path | None = None) -> str:
        def take() -> None:
            steps = SystemCalls(_CALLS, die_at, told)
            steps.watch()
            bundled(server, out, "new", codec=Codec.GZIP)
            steps.tell()

        return in_child(take)

    shutil.copytree(tmp_path / "prepared", tmp_path / "counted")
    assert run(tmp_path / "counted", 0, tmp_path / "count") == DONE
    steps = int((tmp_path / "count").read_text())
    assert steps > 100
    for step in chosen(steps):
        out = tmp_path / "out"
        shutil.copytree(tmp_path / "prepared", out)
        assert run(out, step) == KILLED, f"step {step} was never made"
        there = bundle_names(out)
        assert there in (["before"], ["before", "new"]), step
        assert all(content(BundleView(out / name)) == expected for name in there), step
        if "new" not in there:
            assert content(bundled(server, out, "new")[0]) == expected
        assert sorted(p.name for p in out.iterdir()) == ["before", "new"], step
        shutil.rmtree(out)


def kill_in_an_archive(tmp_path: Path, chosen: Callable[[int], list[int]]) -> None:
    server = made_server(tmp_path / "server")
    prepared = tmp_path / "prepared"
    place = new_local_place(prepared)
    archived(place, server)
    first = bytes_of(newest(place))
    server.add(server.log_dir / "log.4", [9, 10])
    server.snapshot(9)
    server.zxid = 10

    def at(root: Path, store: Any = None) -> SourceRef:
        return SourceRef(store or LocalStore(root), place.repository, place.source)

    shutil.copytree(prepared, tmp_path / "counted")
    counting = FaultyStore(LocalStore(tmp_path / "counted"), no_faults)
    archived(at(tmp_path / "counted", counting), server)
    expected = bytes_of(newest(at(tmp_path / "counted")))
    assert len(counting.calls) > 20
    for call in chosen(len(counting.calls)):
        root = tmp_path / "victim"
        shutil.copytree(prepared, root)
        victim = at(root, FaultyStore(LocalStore(root), KillAfter(call)))
        assert in_child(lambda v=victim: archived(v, server)) == KILLED, call  # type: ignore[misc]  # bound now
        _check(at(root), first, expected)
        if len(read_chain(at(root)).completed) == 1:
            archived(at(root), server)
        _check(at(root), first, expected)
        assert len(read_chain(at(root)).completed) == 2
        shutil.rmtree(root)


def _check(place: SourceRef, first: dict[Any, bytes], second: dict[Any, bytes]) -> None:
    completed = read_chain(place).completed
    assert [bytes_of(view_of(place, entry)) for entry in completed] == [first, second][: len(completed)]
    assert completed
