"""A real server started on a directory, with a session that may read its whole tree: for boot levels and drills."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from logkeep.embedded.zookeeper import RELEASES, EmbeddedZooKeeper, ZooKeeperRelease
from logkeep.errors import ServerFailed
from logkeep.zookeeper.model.archived import BackupView
from logkeep.zookeeper.server.client import Credential, ZooKeeperSession, session
from logkeep.zookeeper.verify.boot import Boot, log_end

_ASK_S = 30.0
MAXBUFFER = (1 << 31) - 2048
"""Of `jute.maxbuffer`: nodes may be larger than a usual server takes, and it is the backup that is looked at."""


def boot_of(version: str, cache: Path) -> Boot:
    """Starts the supported release that is nearest to the version that a backup was taken from."""
    release = ZooKeeperRelease(nearest_release(version))

    @contextmanager
    def start(data_dir: Path) -> Iterator[ZooKeeperSession]:
        beside = data_dir.with_name(f"{data_dir.name}.server")
        options = [f"-Djute.maxbuffer={MAXBUFFER}"]
        server = EmbeddedZooKeeper(beside, cache, release=release, data_dir=data_dir, java_options=options)
        credential = Credential("digest", f"super:{server.password}")
        with _log_told(server), server, session(server.client, _ASK_S, [credential]) as opened:
            yield opened

    return start


@contextmanager
def _log_told(server: EmbeddedZooKeeper) -> Iterator[None]:
    """Its log goes away with the scratch directory: nobody is sent there."""
    try:
        yield
    except ServerFailed as error:
        if str(server.log) in error.remedy:
            error.remedy = f"the server's last words: {log_end(error)}"
        raise


def version_of(view: BackupView) -> str:
    """The newest that any member had when it was backed up; empty where none is known."""
    return max((member.version for member in view.members), default="", key=_numbers)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())


def nearest_release(version: str) -> str:
    """Of the same line (3.6 of 3.6.1); the newest for what is not known."""
    line = version.split(".")[:2]
    return next((release for release in RELEASES if release.split(".")[:2] == line), RELEASES[-1])
