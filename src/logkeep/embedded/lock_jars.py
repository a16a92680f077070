"""Resolves all jars anew and writes their hashes: `python -m logkeep.embedded.lock_jars FILE [COORDINATES …]`.

`make lock` runs it. The sets are those of the supported releases, and those of the arguments: coordinates joined by
commas. Jars that are fetched alone, with a classifier or as `jar`, keep their hashes: only tests use them, and they
are written by hand.
"""

import importlib.metadata
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from logkeep.embedded.kafka import KafkaRelease
from logkeep.embedded.zookeeper import JETTY, RELEASES, ZooKeeperRelease
from logkeep.engine.spark.jvm.jar_lock import hashes, parse_lock, render_lock, set_name
from logkeep.engine.spark.jvm.jars import fetched, spark_home

OF_PYSPARK = (
    "slf4j-api-*", "log4j-slf4j2-impl-*", "log4j-api-2*", "log4j-core-2*", "scala-library-*", "metrics-core-*",
    "snappy-java-*", "commons-cli-*", "jackson-core-2*", "jackson-databind-*", "jackson-annotations-*", "zookeeper-*",
    "netty-*",
)  # fmt: skip
"""What servers need of the jars that PySpark contains."""


_CLASSIFIED = 3
"""Colons in the coordinates of a jar with a classifier."""


def product_sets() -> list[Sequence[str]]:
    """The coordinates that this release can start."""
    return [KafkaRelease().coordinates, *(ZooKeeperRelease(version).coordinates for version in RELEASES), JETTY]


def write_lock(file: Path, more: Sequence[Sequence[str]]) -> None:
    known = parse_lock(file.read_text()) if file.exists() else {}
    with tempfile.TemporaryDirectory() as scratch:
        sets = {set_name(each): _resolved(each, Path(scratch)) for each in (*product_sets(), *more)}
    sets |= {name: pins for name, pins in known.items() if name.split(",")[0].count(":") == _CLASSIFIED}
    brought = [jar for pattern in OF_PYSPARK for jar in (spark_home() / "jars").glob(f"{pattern}.jar")]
    sets[f"pyspark:{importlib.metadata.version('pyspark')}"] = hashes(brought)
    file.write_text(render_lock(sets))
    file.chmod(0o644)


def _resolved(coordinates: Sequence[str], scratch: Path) -> dict[str, str]:
    with fetched(coordinates, scratch, dict(os.environ)) as jars:
        return hashes(sorted(jars.iterdir()))


if __name__ == "__main__":
    write_lock(Path(sys.argv[1]), [each.split(",") for each in sys.argv[2:]])
