"""Directories of real servers, damaged on purpose, and what a real server makes of them."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from kazoo.exceptions import MarshallingError

from logkeep.embedded.ports import free_ports
from logkeep.embedded.zookeeper import EmbeddedZooKeeper, ZooKeeperRelease
from logkeep.errors import Damaged, ServerFailed
from logkeep.model.cache import cache_dir
from tests.support.zookeeper.load import Load
from tests.support.zookeeper.recorded_moments import DELETES_NOTHING
from tests.support.zookeeper.server_files import loaded, logs, snapshots
from tests.support.zookeeper.slow_log import SlowRecord, good_records
from tests.support.zookeeper.tree_recorder import Recording, Seen, record
from tests.support.zookeeper.unstartable_snapshots import WHOLE_SINCE

PASSWORD = "damage"
SETTINGS = {"snapCount": "300", "preAllocSize": "64", "forceSync": "no", "initLimit": "20", "syncLimit": "10"}
JAVA = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", DELETES_NOTHING)
CONFIG = "/zookeeper/config"
_IN_LAST_LOG, _SNAPSHOTS, _BEHIND = 100, 3, 2


class Server(StrEnum):
    """What a real server does with a directory."""

    REFUSES = "refuses"
    RIGHT = "right"
    """It starts, with the tree that was there."""
    WRONG = "wrong"
    """It starts, with another tree, or one that it cannot give out, and says nothing."""


@dataclass(frozen=True)
class Written:
    """A directory that a real server wrote, and the tree that it had when it was stopped."""

    data_dir: Path
    release: ZooKeeperRelease
    truth: Recording

    def copied(self, target: Path) -> Path:
        shutil.copytree(self.data_dir, target)
        return target

    def records(self) -> list[SlowRecord]:
        return [record for path in logs(self.data_dir) for record in good_records(path.read_bytes())]


def server(directory: Path, release: ZooKeeperRelease, data_dir: Path, **settings: str) -> EmbeddedZooKeeper:
    return EmbeddedZooKeeper(
        directory,
        cache_dir(os.environ, Path.home()),
        release=release,
        settings={**SETTINGS, **settings},
        data_dir=data_dir,
        password=PASSWORD,
        java_options=JAVA,
    )


def write(directory: Path, version: str, steps: int = 7) -> Written:
    """Some thousand transactions of all kinds; all sessions are closed at the end, so nothing runs out later."""
    release = ZooKeeperRelease(version)
    with server(directory / "writer", release, directory / "data") as running:
        multis = release.line >= WHOLE_SINCE
        load = Load([running.client], PASSWORD, line=release.line, seed=3, multis=multis)
        for _ in range(steps):
            load.step()
        while not _has_enough_files(directory / "data"):
            load.step()
        _lengthen_last_log(load, directory / "data")
        load.close()
        truth = record(running.client, PASSWORD)
    _remove_cut_snapshot(directory / "data")
    return Written(directory / "data", release, truth)


def write_epochs(directory: Path, version: str, epochs: int = 2) -> Written:
    """An ensemble of one member, which begins an epoch whenever it starts. Only what 3.4 knows too is asked of it."""
    release = ZooKeeperRelease(version)
    for number in range(epochs):
        with _member(directory / "writer", release, directory / "data") as running:
            load = Load([running.client], PASSWORD, line=(3, 4), seed=number)
            load.step()
            load.step()
            _lengthen_last_log(load, directory / "data")
            load.close()
            truth = record(running.client, PASSWORD)
    return Written(directory / "data", release, truth)


def _has_enough_files(data_dir: Path) -> bool:
    """A busy server skips snapshots: tests need some that are finished, and logs behind the second one."""
    finished = snapshots(data_dir)[:-1]
    if len(finished) < _SNAPSHOTS:
        return False
    second = _zxid(finished[1])
    return sum(_zxid(path) > second + 1 for path in logs(data_dir)) >= _BEHIND


def _zxid(path: Path) -> int:
    return int(path.name.split(".")[1], 16)


def _remove_cut_snapshot(data_dir: Path) -> None:
    """The end of the server may have cut the newest snapshot, which tests then would take for a whole one."""
    newest = snapshots(data_dir)[-1]
    try:
        loaded(newest)
    except Damaged:
        newest.unlink()


def _lengthen_last_log(load: Load, data_dir: Path) -> None:
    """A server begins a log whenever it likes: what tests do to the end of the last one needs some records in it."""
    while len(good_records(logs(data_dir)[-1].read_bytes())) < _IN_LAST_LOG:
        load.step()


def _member(directory: Path, release: ZooKeeperRelease, data_dir: Path) -> EmbeddedZooKeeper:
    quorum, election = free_ports(2)
    return EmbeddedZooKeeper(
        directory,
        cache_dir(os.environ, Path.home()),
        release=release,
        settings={**SETTINGS, "standaloneEnabled": "false", "server.1": f"127.0.0.1:{quorum}:{election}"},
        data_dir=data_dir,
        my_id=1,
        password=PASSWORD,
        java_options=JAVA,
    )


def keep_one_snapshot(data_dir: Path, number: int = 0) -> Path:
    """So that a server needs all logs behind it."""
    found = snapshots(data_dir)
    for path in found:
        if path != found[number]:
            path.unlink()
    return found[number]


def verdict(data_dir: Path, truth: Recording, release: ZooKeeperRelease, scratch: Path, **settings: str) -> Server:
    """Start a real server on it and look at its whole tree."""
    try:
        with server(scratch, release, data_dir, **settings) as running:
            found = record(running.client, PASSWORD)
    except ServerFailed:
        return Server.REFUSES
    except MarshallingError:  # a fuzzy snapshot may lack the permissions of a node; the logs that have them are gone
        return Server.WRONG
    return Server.RIGHT if _tree(found) == _tree(truth) else Server.WRONG


def _tree(recording: Recording) -> dict[str, Seen]:
    return {path: node for path, node in recording.nodes.items() if path != CONFIG}


@contextmanager
def patched(path: Path) -> Iterator[bytearray]:
    """The bytes of a file, to be changed in place."""
    content = bytearray(path.read_bytes())
    yield content
    path.write_bytes(content)
