"""A real server started on a directory, with a session that may read its whole tree: for boot levels and drills."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from logkeep.embedded.zookeeper import RELEASES, EmbeddedZooKeeper, ZooKeeperRelease
from logkeep.zookeeper.boot import Boot
from logkeep.zookeeper.client import Credential, Session, session
from logkeep.zookeeper.kept import BackupView

_ASK_S = 30.0


def boot_of(version: str, cache: Path, java_options: Sequence[str] = ()) -> Boot:
    """Starts the supported release that is nearest to the version that a backup was taken from."""
    release = ZooKeeperRelease(nearest_release(version))

    @contextmanager
    def start(data_dir: Path) -> Iterator[Session]:
        beside = data_dir.with_name(f"{data_dir.name}.server")
        server = EmbeddedZooKeeper(beside, cache, release=release, data_dir=data_dir, java_options=java_options)
        with server, session(server.client, _ASK_S, [Credential("digest", f"super:{server.password}")]) as opened:
            yield opened

    return start


def version_of(view: BackupView) -> str:
    """The newest that any member had when it was backed up; empty where none is known."""
    return max((member.version for member in view.members), default="", key=_numbers)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())


def nearest_release(version: str) -> str:
    """Of the same line (3.6 of 3.6.1); the newest for what is not known."""
    line = version.split(".")[:2]
    return next((release for release in RELEASES if release.split(".")[:2] == line), RELEASES[-1])
