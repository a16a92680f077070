"""An application on a cluster with TLS and SASL: its processes and every command use one file of properties."""

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from logkeep.application.client_config import client_config
from logkeep.application.control import SendRequest
from logkeep.application.kafka_log.client import KafkaClient
from logkeep.application.kafka_log.current_application import ensure_application, find_application
from tests.support.cli.processes import logkeep
from tests.support.kafka.application_processes import ApplicationProcesses
from tests.support.running_application import new_repository
from tests.support.servers.secured_kafka import PASSWORD, SecuredKafka, write_properties

pytestmark = pytest.mark.xdist_group("kafka-secured")
NAME = "bank-secured"


def _allow(secured: SecuredKafka) -> None:
    """alice may do everything with what has the application's name in front, and nothing else."""
    kinds = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)
    prefix, allow = ResourcePatternType.PREFIXED, AclPermissionType.ALLOW
    admin = AdminClient({"bootstrap.servers": secured.bootstrap})
    rules = [AclBinding(kind, NAME, prefix, "User:alice", "*", AclOperation.ALL, allow) for kind in kinds]
    for each in admin.create_acls(rules).values():
        each.result(60)


def _properties(secured: SecuredKafka, directory: Path) -> Path:
    found = {
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(secured.files / "ca.pem"),
        "sasl.mechanisms": "SCRAM-SHA-256",
        "sasl.username": "alice",
        "sasl.password": PASSWORD,
    }
    return write_properties(directory / "client.properties", found)


@pytest.mark.usefixtures("as_before")
def test_backups_checkpoints_and_restores_use_tls_and_sasl(secured: SecuredKafka, tmp_path: Path) -> None:
    _allow(secured)
    servers, file = f"localhost:{secured.ports['SASL_SSL']}", _properties(secured, tmp_path)
    run = ApplicationProcesses(tmp_path, servers, "tests.support.running_application:bank", NAME)
    run.client_config = file
    new_repository(run.repository)
    where = ("--bootstrap-servers", servers, "--client-config", str(file), "--repo", str(run.repository), "--json")

    def app(*arguments: str) -> dict[str, Any]:
        done = logkeep("app", *arguments, *where, home=tmp_path)
        assert done.returncode == 0, done.stderr
        assert PASSWORD not in done.stdout + done.stderr
        return dict(json.loads(done.stdout))

    config = client_config(servers, file)
    ensure_application(config, NAME, 2)
    with run.running("data"):
        port = KafkaClient(config, NAME)
        port.send(SendRequest("move", "a1", {"amount": 1, "to": "b1"}))
        port.close()
        assert app("backup", NAME, "--id", "7")["state"] == "completed"
        assert app("checkpoint", NAME, "--id", "8")["id"] == 8
    assert app("restore", "7", "--replace", "--yes", "--engine", "inline")["history"] == 1
    assert find_application(config, NAME).history == 1


def test_a_property_that_the_client_does_not_know_is_a_clear_error(tmp_path: Path) -> None:
    new_repository(tmp_path / "repository")
    file = write_properties(tmp_path / "client.properties", {"security.protocoll": "SSL"})
    done = logkeep(
        "app", "backup", NAME, "--bootstrap-servers", "127.0.0.1:1", "--client-config", str(file),
        "--repo", str(tmp_path / "repository"), home=tmp_path,
    )  # fmt: skip
    assert done.returncode == 40
    assert "security.protocoll" in done.stderr
