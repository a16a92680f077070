"""An offline restore on Spark as a program of its own: `… REPOSITORY ROOT BACKUP CACHE` prints one JSON document."""

import json
import sys
from contextlib import closing
from pathlib import Path

from logkeep.engine.spark.engine import SparkEngine
from logkeep.engine.spark.settings import SparkSettings
from logkeep.kafka.offline_restore.run import restore_offline
from logkeep.model.time import random_token, utc_now
from logkeep.repository.access import open_repository
from logkeep.store.local.store import LocalStore
from tests.support.kafka.offline_restore import wished


def main(repository: str, root: str, backup: str, cache: str) -> None:
    place = open_repository(LocalStore(Path(repository))).place("prod")
    wish = wished(int(backup), [Path(root)], segment_bytes=300)
    with closing(SparkEngine(SparkSettings(Path(cache), "local[2]"))) as engine:
        report = restore_offline(wish, place, engine, utc_now, random_token)
    print(json.dumps({"good": report.good, "records": report.records, "logs": len(report.logs)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
