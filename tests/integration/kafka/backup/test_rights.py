"""What a user may not see is said as far as it can be known; one bad server does not hide the good ones."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from logkeep.errors import TlsFailed
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.properties import load_settings
from logkeep.kafka.client.settings import endpoints
from tests.support.cli.filled_repository import Filled
from tests.support.servers.secured_kafka import SecuredKafka

pytestmark = pytest.mark.xdist_group("kafka-secured")


@pytest.fixture
def describing(secured: SecuredKafka) -> Iterator[None]:
    """alice may describe the cluster, for as long as a test runs."""
    admin, where = AdminClient({"bootstrap.servers": secured.bootstrap}), (ResourceType.BROKER, "kafka-cluster")
    rule = (*where, ResourcePatternType.LITERAL, "User:alice", "*")
    rights = (AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)
    for each in admin.create_acls([AclBinding(*rule, right, AclPermissionType.ALLOW) for right in rights]).values():
        each.result(30)
    yield
    for each in admin.delete_acls([AclBindingFilter(*rule, AclOperation.ANY, AclPermissionType.ANY)]).values():
        each.result(30)


def _backup(secured: SecuredKafka, *more: str) -> tuple[str, ...]:
    client = secured.sasl_file("SASL_SSL", "SCRAM-SHA-256")
    return "kafka", "backup", "--command-config", str(client), "--source", "prod", *more


@pytest.mark.usefixtures("describing")
def test_a_hidden_topic_is_named(secured: SecuredKafka, repo: Filled) -> None:
    for more in (("--dry-run",), ()):
        done = repo.json(*_backup(secured, *more), code=2)
        hidden = [f for f in done["findings"] if f["code"] == "topic-hidden"]
        assert [(f["where"], f["severity"]) for f in hidden] == [("closed", "warning")]
        assert done["topics"] == 1
    done = repo.json(*_backup(secured, "--exclude", "closed"))
    assert [f["code"] for f in done["findings"] if f["severity"] != "note"] == []


@pytest.mark.usefixtures("describing")
def test_a_hidden_topic_is_named_when_a_dataset_is_written(secured: SecuredKafka, repo: Filled, tmp_path: Path) -> None:
    client = str(secured.sasl_file("SASL_SSL", "SCRAM-SHA-256"))
    words = ("kafka", "backup", "--command-config", client, "--format", "avro", "--to", str(tmp_path / "dataset"))
    for more in (("--dry-run",), (), ()):
        done = repo.json(*words, *more, code=2)
        found = [(f["code"], f["where"], f["severity"]) for f in done["findings"]]
        assert found == [("topic-hidden", "closed", "warning")]
        assert done["topics"] == 1
    assert repo.json(*words, "--exclude", "closed")["findings"] == []


def test_what_cannot_be_known_is_said(secured: SecuredKafka, repo: Filled) -> None:
    done = repo.json(*_backup(secured, "--dry-run"), code=2)
    codes = {f["code"]: f["severity"] for f in done["findings"]}
    assert codes["list-limited"] == "note"
    assert "topic-hidden" not in codes


def test_a_server_with_a_bad_certificate_does_not_hide_the_others(secured: SecuredKafka) -> None:
    stores = {"ssl__keystore__type": "PEM", "ssl__keystore__location": str(secured.files / "alice.pem")}
    settings = load_settings(secured.client_file("SSL", **stores))
    bad, good = (endpoints(f"localhost:{secured.ports[name]}")[0] for name in ("EXPIRED", "SSL"))
    with Cluster(replace(settings, bootstrap=(bad, good))) as cluster:
        assert [t.name for t in cluster.metadata().topics] == ["open"]
    with Cluster(replace(settings, bootstrap=(bad,))) as cluster, pytest.raises(TlsFailed, match="expired"):
        cluster.metadata()
