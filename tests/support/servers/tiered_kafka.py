"""A broker with tiered storage: Apache's own LocalTieredStorage, which moves segments to another directory.

It is in the test jars of Kafka, which Spark's Ivy fetches where its settings name the classifier. Their hashes are in
the lock of all jars.
"""

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.engine.spark.jar_lock import check_directory, set_name
from logkeep.engine.spark.jars import fetched
from logkeep.model.cache import jars_dir

VERSION = "4.3.1"
COORDINATES = (f"org.apache.kafka:kafka-clients:{VERSION}", f"org.apache.kafka:kafka-storage:{VERSION}")
PINNED = set_name(f"{each}:test" for each in COORDINATES)
_SETTINGS = """\
<ivysettings>
  <settings defaultResolver="tests"/>
  <resolvers>
    <ibiblio name="tests" m2compatible="true" usepoms="false" {root}
             pattern="[organisation]/[module]/[revision]/[artifact]-[revision]-test.[ext]"/>
  </resolvers>
</ivysettings>
"""
_MIRROR = re.compile(r"^\s*spark\.jars\.repositories[\s=]+([^\s,]+)", re.MULTILINE)


def storage_jars(cache: Path) -> list[Path]:
    """The test jars of Kafka's storage and clients, from the cache or from the registry or its mirror."""
    place = jars_dir(cache) / f"kafka-tests-{VERSION}"
    if not place.is_dir():
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _classified() as environ, fetched(COORDINATES, place.parent, environ) as jars:
            check_directory(jars, PINNED, remedy="use another mirror")
            with suppress(OSError):  # another process was faster
                jars.rename(place)
    check_directory(place, PINNED, remedy=f"remove {place}")
    return sorted(place.glob("*.jar"))


@contextmanager
def _classified() -> Iterator[dict[str, str]]:
    """Variables with which Spark's Ivy takes test jars, from the mirror of its own settings if there is one."""
    own = Path(os.environ.get("SPARK_CONF_DIR", "/nowhere")) / "spark-defaults.conf"
    mirror = _MIRROR.search(own.read_text()) if own.is_file() else None
    with tempfile.TemporaryDirectory() as name:
        settings = Path(name) / "ivysettings.xml"
        settings.write_text(_SETTINGS.format(root=f'root="{mirror[1]}"' if mirror else ""))
        (Path(name) / "spark-defaults.conf").write_text(f"spark.jars.ivySettings {settings}\n")
        yield os.environ | {"SPARK_CONF_DIR": name}


@contextmanager
def tiered_kafka(directory: Path, cache: Path) -> Iterator[EmbeddedKafka]:
    """It moves closed segments within a second, and deletes them from its own disk as soon as their topic allows."""
    storage, metadata = "remote.log.storage.manager", "remote.log.metadata.manager"
    properties = {
        "remote.log.storage.system.enable": "true",
        f"{storage}.class.name": "org.apache.kafka.server.log.remote.storage.LocalTieredStorage",
        f"{storage}.class.path": ":".join(map(str, storage_jars(cache))),
        f"{storage}.impl.prefix": "rsm.config.",
        "rsm.config.dir": str(directory / "tiered"),
        f"{metadata}.listener.name": "PLAINTEXT",
        f"{metadata}.impl.prefix": "rlmm.config.",
        "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
        "rlmm.config.remote.log.metadata.topic.num.partitions": "2",
        "remote.log.manager.task.interval.ms": "200",
        "log.initial.task.delay.ms": "100",
        "log.retention.check.interval.ms": "200",
    }
    (directory / "tiered").mkdir(parents=True)
    with EmbeddedKafka(directory / "broker", cache, properties=properties) as running:
        yield running
