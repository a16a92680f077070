"""The Kafka of the guides: a broker that lives from one scene to another, with a plain and a secured listener.

`python -m tests.docs.broker DIRECTORY` starts it and stays until it is terminated; SIGUSR1 kills it without a goodbye.
Its addresses come from the environment, where the page's reader has their own: `BROKERS` and `TLS_BROKERS`. The users
`logkeep` and `restorer` have exactly the rights that the guides list.
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from logkeep.embedded.kafka import EmbeddedKafka
from tests.support.processes import wait_for
from tests.support.servers.certificates import authority, signed

PASSWORD = "correct-horse"
READY = "ready"
_LISTENERS = "PLAINTEXT:PLAINTEXT,TLS:SASL_SSL,CONTROLLER:PLAINTEXT"
_ALL, _PREFIX = ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED
_EVERY_RULE = AclBindingFilter(
    ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
)
_TOPICS = "CREATE DESCRIBE READ WRITE DESCRIBE_CONFIGS ALTER_CONFIGS DELETE"
RIGHTS = {
    "logkeep": (
        (ResourceType.TOPIC, "*", _ALL, "READ DESCRIBE DESCRIBE_CONFIGS"),
        (ResourceType.GROUP, "*", _ALL, "DESCRIBE"),
        (ResourceType.TRANSACTIONAL_ID, "*", _ALL, "DESCRIBE"),
        (ResourceType.BROKER, "kafka-cluster", _ALL, "DESCRIBE DESCRIBE_CONFIGS"),
    ),
    "restorer": (
        (ResourceType.TOPIC, "*", _ALL, _TOPICS),
        (ResourceType.GROUP, "*", _ALL, "READ DELETE"),
        (ResourceType.TRANSACTIONAL_ID, "logkeep-restore-", _PREFIX, "DESCRIBE WRITE"),
    ),
}


class GuideKafka(EmbeddedKafka):
    """At the addresses of the environment, with an authority of its own in `ca.pem`."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, Path(os.environ["SCENE_CACHE"]))
        self.bootstrap = os.environ["BROKERS"]
        self.port = _port("BROKERS")

    def properties(self) -> dict[str, str]:
        tls = f"TLS://127.0.0.1:{_port('TLS_BROKERS')}"
        plain, controller = f"PLAINTEXT://127.0.0.1:{self.port}", f"CONTROLLER://127.0.0.1:{self.controller_port}"
        return {
            **super().properties(),
            "listeners": f"{plain},{tls},{controller}",
            "advertised.listeners": f"{plain},{tls.replace('127.0.0.1', 'localhost')}",
            "listener.security.protocol.map": _LISTENERS,
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.directory / "broker.pem"),
            "sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "listener.name.tls.scram-sha-512.sasl.jaas.config": (
                "org.apache.kafka.common.security.scram.ScramLoginModule required;"
            ),
        }

    def start(self) -> None:
        self.directory.mkdir(parents=True)
        own = authority("Guide CA")
        signed(own, "broker", host="localhost").write_pem(self.directory / "broker.pem")
        (self.directory / "ca.pem").write_text(own.pem)
        super().start()
        admit("logkeep")


def _port(variable: str) -> int:
    return int(os.environ[variable].rpartition(":")[2])


def admit(user: str) -> None:
    """Make a user of a guide and give it its rights."""
    admin = AdminClient({"bootstrap.servers": os.environ["BROKERS"]})
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    made = UserScramCredentialUpsertion(user, info, PASSWORD.encode())
    rules = list(_rules(user))
    for each in (*admin.alter_user_scram_credentials([made]).values(), *admin.create_acls(rules).values()):
        each.result(60)
    # The broker hears of both a moment after they were accepted.
    wait_for(lambda: set(rules) <= set(admin.describe_acls(_EVERY_RULE).result(60)), "the rules")
    wait_for(lambda: user in admin.describe_user_scram_credentials().result(60), "the user")


def _rules(user: str) -> Iterator[AclBinding]:
    for kind, name, pattern, operations in RIGHTS[user]:
        for operation in operations.split():
            allowed = AclOperation[operation]
            yield AclBinding(kind, name, pattern, f"User:{user}", "*", allowed, AclPermissionType.ALLOW)


def write(topic: str, records: int, partitions: int) -> None:
    """Records of a client that is not ours, spread evenly."""
    producer = Producer({"bootstrap.servers": os.environ["BROKERS"], "acks": "all", "linger.ms": 5})
    for number in range(records):
        producer.produce(topic, f"{topic} {number}".encode(), str(number).encode(), partition=number % partitions)
    if producer.flush(60):
        raise SystemExit(f"not all records of {topic} were accepted")


def run(directory: Path) -> None:
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    with GuideKafka(directory) as kafka:

        def die(*_: object) -> None:
            kafka.kill()
            ended.set()

        signal.signal(signal.SIGUSR1, die)
        (directory / READY).touch()
        ended.wait()
    (directory / READY).unlink()


if __name__ == "__main__":
    run(Path(sys.argv[1]))
