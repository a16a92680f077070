"""A broker with tiered storage: Apache's own LocalTieredStorage, which moves segments to another directory.

It is in the test jars of Kafka's storage and clients.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from logkeep.embedded.kafka import EmbeddedKafka
from tests.support.servers.exact_jars import ExactJars

TEST_JARS = ExactJars(
    "kafka-tests-4.3.1", ("org.apache.kafka:kafka-clients:4.3.1", "org.apache.kafka:kafka-storage:4.3.1"), "test"
)


@contextmanager
def tiered_kafka(directory: Path, cache: Path) -> Iterator[EmbeddedKafka]:
    """It moves closed segments within a second, and deletes them from its own disk as soon as their topic allows."""
    storage, metadata = "remote.log.storage.manager", "remote.log.metadata.manager"
    properties = {
        "remote.log.storage.system.enable": "true",
        f"{storage}.class.name": "org.apache.kafka.server.log.remote.storage.LocalTieredStorage",
        f"{storage}.class.path": ":".join(map(str, TEST_JARS.files(cache))),
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
