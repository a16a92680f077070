"""Starts a ZooKeeper server on a directory, with a session that can read its whole tree: for boot checks and drills.

It listens on 127.0.0.1 at a random port. As long as it runs, every user of this host who finds the port can read the
nodes whose ACLs allow it to everyone, as on the server that was backed up. No other host can.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from logkeep.embedded.ports import random_ports
from logkeep.embedded.zookeeper import RELEASES, EmbeddedZooKeeper, ZooKeeperRelease
from logkeep.errors import ServerFailed
from logkeep.zookeeper.model.archived import BackupView
from logkeep.zookeeper.server.client import Credential, ZooKeeperSession, session
from logkeep.zookeeper.verify.boot import Boot, log_end

_ASK_S = 30.0
MAXBUFFER = (1 << 31) - 2048
"""Of `jute.maxbuffer`: nodes of the backup may be larger than a server accepts by default."""


def boot_of(version: str, cache: Path, say: Callable[[str], None] = lambda _: None) -> Boot:
    """Starts the supported release that is nearest to the version of the backup. `say` gets a line before it starts."""
    release = ZooKeeperRelease(nearest_release(version))

    @contextmanager
    def start(data_dir: Path) -> Iterator[ZooKeeperSession]:
        beside = data_dir.with_name(f"{data_dir.name}.server")
        options = [f"-Djute.maxbuffer={MAXBUFFER}"]
        server = EmbeddedZooKeeper(
            beside, cache, release=release, data_dir=data_dir, java_options=options, ports=random_ports
        )
        credential = Credential("digest", f"super:{server.password}")
        say(f"a ZooKeeper {release.version} server is starting")
        asked = partial(session, server.client, _ASK_S, [credential], largest_reply=MAXBUFFER)
        with _with_log_end(server), server, asked() as opened:
            yield opened

    return start


@contextmanager
def _with_log_end(server: EmbeddedZooKeeper) -> Iterator[None]:
    """The log is removed with the scratch directory: put its end into the error."""
    try:
        yield
    except ServerFailed as error:
        if str(server.log) in error.remedy:
            error.remedy = f"the end of the server's log: {log_end(error)}"
        raise


def version_of(view: BackupView) -> str:
    """The newest version of any member when it was backed up; empty if unknown."""
    return max((member.version for member in view.members), default="", key=_numbers)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())


def nearest_release(version: str) -> str:
    """The release of the same line (3.6 for 3.6.1); the newest for an unknown version."""
    line = version.split(".")[:2]
    return next((release for release in RELEASES if release.split(".")[:2] == line), RELEASES[-1])
