"""Restores of what real servers left in their directories, and what comes of them when a server starts."""

import socket
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from logkeep.embedded.zookeeper import EmbeddedZooKeeper
from logkeep.zookeeper.model.archived import ArchivedFile, Member
from logkeep.zookeeper.model.tree import Tree
from logkeep.zookeeper.restore.disk import Disk
from logkeep.zookeeper.restore.prepare import PreparedRestore, prepare
from logkeep.zookeeper.restore.run import carry_out
from logkeep.zookeeper.restore.values import ServerTarget, ZooKeeperRestoreOptions
from logkeep.zookeeper.timeline.plan import RestorePath, ToEnd, ToZxid, plan
from logkeep.zookeeper.timeline.survey import LogTimes, survey
from logkeep.zookeeper.verify.directory_view import DirectoryView, FileBytes, directory_view
from tests.support.zookeeper.raw_client import data as packed_data
from tests.support.zookeeper.tree_judge import differences
from tests.support.zookeeper.tree_recorder import Recording, record


def view_of(servers: Sequence[EmbeddedZooKeeper], role: str, zxid: int | None = None) -> DirectoryView:
    """The directories of stopped servers as a backup."""
    members = [
        Member(
            name=str(number),
            version=server.release.version,
            data_dir=str(server.data_dir),
            log_dir=str(server.log_dir),
            role=role,
            zxid=zxid,
        )
        for number, server in enumerate(servers, 1)
    ]
    return together("directories", [directory_view(member) for member in members])


def path_to(view: DirectoryView, zxid: int | None = None) -> RestorePath:
    found = plan(survey(view), ToEnd() if zxid is None else ToZxid(zxid), LogTimes(view))
    assert isinstance(found, RestorePath), found
    return found


def target_of(server: EmbeddedZooKeeper) -> ServerTarget:
    server.data_dir.mkdir(parents=True, exist_ok=True)
    server.log_dir.mkdir(parents=True, exist_ok=True)
    return ServerTarget(data_dir=server.data_dir, log_dir=server.log_dir, host=server.client)


def restored(view: DirectoryView, wish: ZooKeeperRestoreOptions, zxid: int | None = None) -> PreparedRestore:
    """Carry it out; what was prepared holds the tree that the servers must have."""
    prepared = prepare(view, path_to(view, zxid), wish)
    carry_out(prepared, replace=True)
    return prepared


def compared(server: EmbeddedZooKeeper, tree: Tree) -> list[str]:
    """What differs between a running server and a tree. The look itself is a session, so zxids are not compared."""
    return differences(_at(record(server.client, server.password), tree), tree)


def _at(seen: Recording, tree: Tree) -> Recording:
    return replace(seen, zxid=tree.zxid)


class Stopped(BaseException):
    """Ends a restore where the process would have died."""


def stopping_when(condition: Callable[[], bool]) -> Disk:
    """As soon as it holds after a step."""

    def after(_step: str) -> None:
        if condition():
            raise Stopped

    return Disk(after)


def connect_request(last_zxid_seen: int) -> bytes:
    """What a client sends first that has seen a zxid already."""
    frame = struct.pack(">iqiq", 0, last_zxid_seen, 10_000, 0) + packed_data(bytes(16)) + b"\0"
    return struct.pack(">i", len(frame)) + frame


def refuses(host: str, last_zxid_seen: int) -> bool:
    """Whether a server sends a client away that has seen a later zxid than it has."""
    name, port = host.split(":")
    with socket.create_connection((name, int(port)), timeout=60) as connection:
        connection.sendall(connect_request(last_zxid_seen))
        return not connection.recv(4)


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def together(name: str, views: Sequence[DirectoryView]) -> DirectoryView:
    """Several members as one view; their names must differ."""
    places: dict[ArchivedFile, FileBytes] = {}
    for view in views:
        places |= view.places
    return DirectoryView(
        name,
        tuple(member for view in views for member in view.members),
        tuple(snapshot for view in views for snapshot in view.snapshots),
        tuple(log for view in views for log in view.logs),
        tuple(seen for view in views for seen in view.seen),
        places,
    )
