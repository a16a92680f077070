"""A real server with something in it, and zkbackup as a user calls it."""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kazoo.security import make_digest_acl

from logkeep.embedded.zookeeper import EmbeddedZooKeeper, ZooKeeperRelease
from logkeep.model.cache import cache_dir
from tests.support.cli.bundle_documents import zkbackup
from tests.support.zookeeper.tree_recorder import Seen, kazoo, record

_SETTINGS = {"preAllocSize": "1024"}
ROLLING = {"snapCount": "60"}
"""It takes snapshots and begins logs where chance wants it, while clients write."""


@dataclass
class Served:
    """`home` is also the working directory of every call."""

    server: EmbeddedZooKeeper
    home: Path

    @property
    def base(self) -> Path:
        return self.home / "backups"

    @property
    def places(self) -> tuple[str, ...]:
        """As the design's examples name them: with their version-2."""
        data, logs = self.server.data_dir / "version-2", self.server.log_dir / "version-2"
        return f"--zk-data-dir={data}", f"--zk-log-dir={logs}"

    @property
    def flags(self) -> tuple[str, ...]:
        return *self.places, f"--zk-host={self.server.client}"

    def run(self, *words: str, code: int = 0, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        done = zkbackup(*words, home=self.home, env={"ZKBACKUP_BACKUP_BASE_DIR": str(self.base), **(env or {})})
        assert done.returncode == code, f"{words}\n{done.stdout}\n{done.stderr}"
        return done

    def json(self, *words: str, code: int = 0, env: dict[str, str] | None = None) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.run(*words, "--format=json", code=code, env=env).stdout)
        return found

    def backup(self, *words: str, code: int = 0, env: dict[str, str] | None = None) -> dict[str, Any]:
        return self.json("backup", *self.flags, *words, code=code, env=env)

    def tree(self) -> dict[str, Seen]:
        """What a usual client sees, without what a server makes up when it starts."""
        nodes = record(self.server.client, self.server.password).nodes
        return {path: seen for path, seen in nodes.items() if path != "/zookeeper/config"}

    def fill(self, top: str, nodes: int) -> None:
        with kazoo(self.server.client, self.server.password) as client:
            client.create(top, b"", acl=[make_digest_acl("shop", "secret", all=True)])
            for number in range(nodes):
                client.create(f"{top}/order-", f"order {number}".encode(), sequence=True)
            client.create(f"{top}/preise-in-€", b"\x00\xff" * 500)

    def begin_log(self) -> None:
        """A server that starts takes a snapshot, which nobody disturbs, and writes a new log."""
        self.server.stop()
        self.server.start()

    def empty(self, top: str) -> None:
        with kazoo(self.server.client, self.server.password) as client:
            client.delete(top, recursive=True)


@contextmanager
def served(home: Path, version: str = "3.9.5", settings: Mapping[str, str] = {}) -> Iterator[Served]:
    release, cache = ZooKeeperRelease(version), cache_dir(os.environ, Path.home())
    server = EmbeddedZooKeeper(
        home / "zk", cache, release=release, settings={**_SETTINGS, **settings}, data_dir=home / "data",
        log_dir=home / "datalog",
    )  # fmt: skip
    with server:
        yield Served(server, home)
