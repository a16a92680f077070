"""A right that is missing on one topic ends a restore before anything is made: 52, and the topic is named."""

import pytest
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

from logkeep.embedded.kafka import EmbeddedKafka
from tests.integration.kafka.restore.scene import stored
from tests.support.cli.filled_repository import Filled
from tests.support.kafka.client_view_of_configs import acls, add_acls, topic_names
from tests.support.kafka.command_in_process import Commands
from tests.support.kafka.topic_matrix import Matrix
from tests.support.processes import wait_for
from tests.support.servers.secured_kafka import SecuredKafka

pytestmark = [pytest.mark.xdist_group("kafka-secured"), pytest.mark.usefixtures("as_before")]
_RIGHTS = ("CREATE", "WRITE", "READ", "ALTER_CONFIGS", "DELETE", "DESCRIBE_CONFIGS")


def _rule(kind: ResourceType, name: str, operation: str) -> AclBinding:
    pattern = ResourcePatternType.PREFIXED if name.endswith("-") else ResourcePatternType.LITERAL
    return AclBinding(kind, name, pattern, "User:alice", "*", AclOperation[operation], AclPermissionType.ALLOW)


def test_one_topic_that_may_not_be_written_to(
    kafka: EmbeddedKafka, secured: SecuredKafka, topics: Matrix, repo: Filled
) -> None:
    names = ("allowed-one", "denied-one")
    producer = topics.producer()
    for name in names:
        topics.create(name)
        producer.produce(name, b"x", partition=0)
    assert producer.flush(30) == 0
    commands = Commands(repo.url, repo.home)
    source = ("--bootstrap-servers", kafka.bootstrap, "--source", "prod")
    commands.json("kafka", "backup", *source, "--topics", "allowed-one|denied-one")
    rules = [_rule(ResourceType.TOPIC, name, each) for name in names for each in _RIGHTS]
    rules.append(_rule(ResourceType.TRANSACTIONAL_ID, "logkeep-restore-", "WRITE"))
    rules.append(_rule(ResourceType.BROKER, "kafka-cluster", "DESCRIBE"))
    lacking = _rule(ResourceType.TOPIC, "denied-one", "WRITE")
    add_acls(secured, *(rule for rule in rules if rule != lacking))
    wait_for(lambda: set(rules) - {lacking} <= acls(secured), "the rules")
    client = str(secured.sasl_file("SASL_SSL", "SCRAM-SHA-256"))
    words = ("kafka", "restore", "latest", "--command-config", client, "--yes", "--engine", "inline")
    before = topic_names(secured), stored(repo)
    told = commands.json(*words, "--dry-run", code=52)
    assert "denied-one" in str(told["refusals"])
    said = commands.error(*words, code=52)
    assert "WRITE on topic denied-one" in said
    assert "kafka-acls --add --allow-principal User:alice --operation Write --topic denied-one" in said
    assert "allowed-one" not in said
    assert (topic_names(secured), stored(repo)) == before
    add_acls(secured, lacking)
    wait_for(lambda: lacking in acls(secured), "the rule")
    assert commands.json(*words)["verdict"] == "proven"
