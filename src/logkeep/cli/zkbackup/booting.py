"""A real server started on a copy of a backup, for `verify --level boot`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from logkeep.embedded.zookeeper import RELEASES, EmbeddedZooKeeper, ZooKeeperRelease
from logkeep.zookeeper.boot import Boot
from logkeep.zookeeper.client import Credential, Session, session

_ASK_S = 30.0


def boot_of(version: str, cache: Path) -> Boot:
    """Starts the supported release that is nearest to the version that the backup was taken from."""
    release = ZooKeeperRelease(nearest_release(version))

    @contextmanager
    def start(data_dir: Path) -> Iterator[Session]:
        server = EmbeddedZooKeeper(data_dir.with_name("server"), cache, release=release, data_dir=data_dir)
        with server, session(server.client, _ASK_S, [Credential("digest", f"super:{server.password}")]) as opened:
            yield opened

    return start


def nearest_release(version: str) -> str:
    """Of the same line (3.6 of 3.6.1); the newest for what is not known."""
    line = version.split(".")[:2]
    return next((release for release in RELEASES if release.split(".")[:2] == line), RELEASES[-1])
