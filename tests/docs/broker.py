"""The Kafka of the guides: a broker that lives from one scene to another, with a plain and a secured listener.

`python -m tests.docs.broker run DIRECTORY` starts it and stays until it is terminated; SIGUSR1
kills it without a goodbye; `… dump ARGUMENTS` is Apache's
`kafka-dump-log.sh`. Its addresses come from the environment, where the page's reader has their own: `BROKERS` and
`TLS_BROKERS`. The user `logkeep` has exactly the rights that the guide lists.
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
from tests.servers.certificates import authority, signed

PASSWORD = "correct-horse"
READY = "ready"
_USER = "User:logkeep"
_LISTENERS = "PLAINTEXT:PLAINTEXT,TLS:SASL_SSL,CONTROLLER:PLAINTEXT"
_RIGHTS = {
    ResourceType.TOPIC: ("*", ("READ", "DESCRIBE", "DESCRIBE_CONFIGS")),
    ResourceType.GROUP: ("*", ("DESCRIBE",)),
    ResourceType.TRANSACTIONAL_ID: ("*", ("DESCRIBE",)),
    ResourceType.BROKER: ("kafka-cluster", ("DESCRIBE", "DESCRIBE_CONFIGS")),
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
        _admit(AdminClient({"bootstrap.servers": self.bootstrap}))


def _port(variable: str) -> int:
    return int(os.environ[variable].rpartition(":")[2])


def _admit(admin: AdminClient) -> None:
    """Make the user of the guide and give it its rights."""
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    made = UserScramCredentialUpsertion("logkeep", info, PASSWORD.encode())
    waiting = [*admin.alter_user_scram_credentials([made]).values(), *admin.create_acls(list(_rules())).values()]
    for each in waiting:
        each.result(30)


def _rules() -> Iterator[AclBinding]:
    for kind, (name, operations) in _RIGHTS.items():
        for operation in operations:
            yield AclBinding(
                kind, name, ResourcePatternType.LITERAL, _USER, "*", AclOperation[operation], AclPermissionType.ALLOW
            )


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


def dump(directory: Path, arguments: list[str]) -> None:
    absolute = [str(Path(each).absolute()) if Path(each).is_file() else each for each in arguments]
    print(GuideKafka(directory).java_tool("org.apache.kafka.tools.DumpLogSegments", absolute), end="")


if __name__ == "__main__":
    if sys.argv[1] == "run":
        run(Path(sys.argv[2]))
    else:
        dump(Path("../kafka").absolute(), sys.argv[2:])
