"""`python -m tests.support.servers.preparation`: fetch all servers that tests start, and record their class archives.

Tests do this themselves where it was not done, one after the other and each for itself: a first start then takes ten
seconds or more. What fails here is reported and left to the tests.
"""

import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from logkeep.embedded.class_archive import archive_options, recorded
from logkeep.embedded.kafka import EmbeddedKafka, KafkaRelease
from logkeep.embedded.lock_jars import product_sets
from logkeep.embedded.zookeeper import EmbeddedZooKeeper, ZooKeeperRelease
from logkeep.engine.spark.engine import SparkEngine
from logkeep.engine.spark.jvm.class_archive import has_archive
from logkeep.engine.spark.jvm.jars import resolve_jars
from logkeep.engine.spark.settings import SparkSettings
from logkeep.model.cache import archive_dir, cache_dir
from tests.integration.spark import tasks
from tests.support.kafka.topic_matrix import BROKER, Matrix
from tests.support.servers.older_kafka import RELEASE as OLDER
from tests.support.servers.spark_connectors import CONNECTORS
from tests.support.servers.tiered_kafka import TEST_JARS
from tests.support.zookeeper.tree_recorder import kazoo

_KAFKAS = (KafkaRelease(), OLDER)
_ZOOKEEPERS = (ZooKeeperRelease("3.4.14"), ZooKeeperRelease("3.9.5"))
"""Those that most tests start."""


def main(cache: Path) -> None:
    environ = dict(os.environ)  # the start of Spark changes some variables for a while
    with ThreadPoolExecutor(4) as pool:  # they wait for the registry
        for coordinates in (*product_sets(), OLDER.coordinates):
            pool.submit(_try, resolve_jars, coordinates, cache, environ)
        for jars in (TEST_JARS, CONNECTORS):
            pool.submit(_try, jars.files, cache)
        _try(_record_spark, cache)
    for kafka in _KAFKAS:
        _try(_record_kafka, kafka, cache)
    for zookeeper in _ZOOKEEPERS:
        _try(_record_zookeeper, zookeeper, cache)


def _try(step: Callable[..., object], *arguments: object) -> None:
    try:
        step(*arguments)
    except Exception as error:  # noqa: BLE001 - whatever it is, the tests that need the server report it
        print(f"not prepared: {type(error).__name__}: {error}", file=sys.stderr)


class _RecordingKafka(EmbeddedKafka):
    options: Sequence[str] = ()

    def command(self, main_class: str, arguments: Sequence[str]) -> list[str]:
        java, *rest = super().command(main_class, arguments)
        return [java, *(self.options if main_class == "kafka.Kafka" else ()), *rest]


def _record_kafka(release: KafkaRelease, cache: Path) -> None:
    """A run in which it leads, is written to and elects the coordinators of groups and transactions."""
    path = release.class_path(cache)
    if archive_options(cache, path):
        return
    with TemporaryDirectory() as scratch, recorded(cache, path) as options:
        kafka = _RecordingKafka(Path(scratch) / "broker", cache, release=release, properties=BROKER)
        kafka.options = options
        with kafka:
            made = Matrix(kafka)
            made.codecs()
            made.transactions().abort_transaction(30)
            made.delete("codecs")


def _record_zookeeper(release: ZooKeeperRelease, cache: Path) -> None:
    path = release.class_path(cache)
    if archive_options(cache, path):
        return
    with TemporaryDirectory() as scratch, recorded(cache, path) as options:
        server = EmbeddedZooKeeper(Path(scratch) / "server", cache, release=release, java_options=options)
        with server, kazoo(server.client, server.password) as client:
            client.create("/recorded", b"value")


def _record_spark(cache: Path) -> None:
    """The engine records by itself when it has no archive."""
    if has_archive(archive_dir(cache)):
        return
    with closing(SparkEngine(SparkSettings(cache, "local[2]"))) as engine:
        engine.map(tasks.echo, [tasks.Unit(1)], tasks.Answer, label="echo", weight=tasks.weight)


if __name__ == "__main__":
    main(cache_dir(os.environ, Path.home()))
