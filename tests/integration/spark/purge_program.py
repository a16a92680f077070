"""A ZooKeeper backup on Spark whose server purges files after they were listed, before a worker opens them.

`python -m tests.integration.spark.purge_program HOME CACHE` prints one JSON document. The process reads a secret first.
"""

import ctypes
import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from logkeep.engine.spark.engine import SparkEngine
from logkeep.engine.spark.settings import SparkSettings
from logkeep.model.process_memory import forbid_core_dumps
from logkeep.model.time import random_token, utc_now
from logkeep.secret_reading import read_file
from logkeep.zookeeper.backup.rounds import RoundSettings
from logkeep.zookeeper.backup.run import ZooKeeperBackupOptions, back_up
from logkeep.zookeeper.repo.sink import archiving
from logkeep.zookeeper.server.four_letter import ServerState
from tests.support.zookeeper.handmade_directories import MadeServer
from tests.support.zookeeper.repositories import new_local_place, newest

_PR_GET_DUMPABLE = 3
_NEWEST = "log.4"


def _dumpable() -> int:
    return int(ctypes.CDLL(None).prctl(_PR_GET_DUMPABLE, 0, 0, 0, 0))


class _Purging:
    """The engine, and a server that purges all but the newest log before a task starts."""

    def __init__(self, inner: SparkEngine, files: Path) -> None:
        self._inner, self._files = inner, files
        self.dumpable: list[int] = []

    def map(
        self, task: Any, units: Sequence[Any], result: type[Any], *, label: str, weight: Callable[[Any], int]
    ) -> list[Any]:
        for path in sorted(self._files.iterdir()):
            if path.name != _NEWEST:
                path.unlink()
        self.dumpable.append(_dumpable())
        return self._inner.map(task, units, result, label=label, weight=weight)

    def at_once(self, units: int) -> int:
        return self._inner.at_once(units)

    def close(self) -> None:
        return


def main(home: str, cache: str) -> int:
    forbid_core_dumps()
    server = MadeServer(Path(home) / "server", zxid=6)
    server.snapshot(0)
    server.log([1, 2, 3], creating=True)
    server.log([4, 5, 6], creating=True)
    secret = Path(home) / "secret"
    secret.touch(mode=0o600)
    read_file(secret, private=True, largest_bytes=10)
    place, seen = new_local_place(Path(home) / "repo"), [_dumpable()]
    with closing(SparkEngine(SparkSettings(Path(cache), "local[2]"))) as spark:
        engine = _Purging(spark, server.snapshot_dir)
        rounds = RoundSettings(lambda _: engine, lambda _: ServerState(6, "standalone", "3.9.5"), timeout_s=0.0)
        with archiving(place, clock=utc_now, tokens=random_token) as sink:
            done = back_up(ZooKeeperBackupOptions((server.place("zk1"),)), sink, rounds, lambda _, word: word)
    print(json.dumps({
        "uid": os.getuid(), "code": done.exit_code, "findings": [f.code for f in done.findings],
        "records": sum(log.records for log in newest(place).logs),
        "dumpable": [*seen, *engine.dumpable[:1], _dumpable()],
    }))  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
