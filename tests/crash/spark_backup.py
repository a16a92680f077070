"""The scripted backup on Spark as a program of its own, which waits at a gate in the middle of its copy.

`python -m tests.crash.spark_backup ROOT REPOSITORY CACHE GATE ENDS fresh|resumed spark|auto` prints one JSON document.
Tasks of every partition but 0 wait until the file GATE exists.
"""

import json
import sys
import time
from contextlib import closing
from pathlib import Path

from logkeep.engine.spark.engine import SparkEngine
from logkeep.engine.spark.settings import SparkSettings
from logkeep.errors import LogkeepError
from logkeep.model.time import random_token, utc_now
from logkeep.model.work import Engine
from logkeep.repository.chain.commits import SourceRef
from logkeep.store.base import ObjectWriter, Store
from logkeep.store.local.store import LocalStore
from logkeep.store.wrapper import DelegatingStore
from tests.support.late_engine import Promising, auto_engine
from tests.support.scripted.backup import back_up


class GatedStore(DelegatingStore):
    """Lets streams into partition 0 through; all others wait for a file."""

    def __init__(self, inner: Store, gate: str) -> None:
        super().__init__(inner)
        self._gate = gate

    def open_new(self, name: str, size_hint: int = 0) -> ObjectWriter:
        if "/partition=0/" not in name:
            (Path(self._gate).parent / f"waiting-{random_token()}").touch()
            while not Path(self._gate).exists():
                time.sleep(0.05)
        return self.inner.open_new(name, size_hint)


def main(root: str, repository: str, cache: str, gate: str, ends: str, how: str, kind: str) -> int:
    place = SourceRef(GatedStore(LocalStore(root), gate), repository, "prod")
    wanted = {int(partition): end for partition, end in json.loads(ends).items()}
    with closing(SparkEngine(SparkSettings(Path(cache), "local[2]"))) as spark:
        engine: Engine = spark if kind == "spark" else Promising(auto_engine(spark, Path(cache)))
        try:
            entry = back_up(place, wanted, engine, utc_now, random_token, resumed=how == "resumed")
        except LogkeepError as error:
            print(json.dumps({"error": error.slug()}))
            return error.exit_code
    print(json.dumps({"id": entry.id}))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
