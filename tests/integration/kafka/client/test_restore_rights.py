"""The one right that is missing is named, by asking alone; the command that is offered mends it."""

import shlex
import uuid

import pytest
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

from logkeep.kafka.admin.transactions import list_transactions
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.properties import load_settings
from logkeep.kafka.client.settings import ClientSettings, endpoints
from logkeep.kafka.restore.facts.permissions import (
    Right,
    RightsFound,
    RightsWanted,
    find_rights,
    missing_rights_error,
    principal_of,
    rights_findings,
)
from tests.support.kafka.client_view_of_configs import acls, add_acls, delete_acls, topic_names
from tests.support.kafka.single_topic import create_topic
from tests.support.processes import wait_for
from tests.support.servers.secured_kafka import SecuredKafka

pytestmark = [pytest.mark.xdist_group("kafka-secured"), pytest.mark.usefixtures("as_before")]
_NEEDED = ("CREATE", "WRITE", "READ", "ALTER_CONFIGS", "DELETE")
_NOTHING = RightsFound((), ())


def _rule(kind: ResourceType, name: str, operation: str) -> AclBinding:
    allow = AclPermissionType.ALLOW
    return AclBinding(kind, name, ResourcePatternType.LITERAL, "User:alice", "*", AclOperation[operation], allow)


def _alice(secured: SecuredKafka) -> Cluster:
    return Cluster(load_settings(secured.sasl_file("SASL_SSL", "SCRAM-SHA-256")))


def _becomes(alice: Cluster, wanted: RightsWanted, expected: RightsFound) -> None:
    """Brokers hear of new rules a moment after they were made."""
    wait_for(lambda: find_rights(alice, wanted) == expected, f"{expected}, last {find_rights(alice, wanted)}", 30)


@pytest.mark.parametrize("lacking", _NEEDED)
def test_one_right_on_one_topic(secured: SecuredKafka, lacking: str) -> None:
    good, bad = (f"{stem}-{uuid.uuid4().hex[:8]}" for stem in ("good", "bad"))
    granted = (*_NEEDED, "DESCRIBE_CONFIGS")
    rules = [_rule(ResourceType.TOPIC, name, each) for name in (good, bad) for each in granted]
    add_acls(secured, *(r for r in rules if (r.name, r.operation.name) != (bad, lacking)))
    wanted = RightsWanted(new_topics=(good, bad), shortened=frozenset({good, bad}))
    expected = RightsFound((Right("TOPIC", bad, lacking),), ())
    with _alice(secured) as alice:
        _becomes(alice, wanted, expected)
        before = topic_names(secured), acls(secured)
        assert find_rights(alice, wanted) == expected
    assert (topic_names(secured), acls(secured)) == before, "questions change nothing"


def test_the_command_that_is_offered_mends_it(secured: SecuredKafka) -> None:
    topic = f"hidden-{uuid.uuid4().hex[:8]}"
    wanted = RightsWanted(new_topics=(topic,), shortened=frozenset({topic}))
    with _alice(secured) as alice:
        found = find_rights(alice, wanted)
        assert {r.operation for r in found.missing} == {*_NEEDED, "DESCRIBE"}
        assert {r.operation for r in found.unknown} == {"DESCRIBE_CONFIGS", "IDEMPOTENT_WRITE"}
        principal = principal_of(alice.settings)
        (missing,) = [f for f in rights_findings(found, principal) if f.code == "right-missing"]
        error = missing_rights_error(found, principal)
        assert error is not None
        assert error.remedy == missing.remedy
        _, *arguments = shlex.split(missing.remedy)
        secured.java_tool("org.apache.kafka.tools.AclCommand", ["--bootstrap-server", secured.bootstrap, *arguments])
        _becomes(alice, wanted, _NOTHING)
        assert create_topic(alice, topic).name == topic


def test_groups_and_transactional_ids(secured: SecuredKafka) -> None:
    mine, other = (uuid.uuid4().hex[:8] for _ in range(2))
    rules = [
        _rule(ResourceType.GROUP, mine, "READ"),
        _rule(ResourceType.TRANSACTIONAL_ID, mine, "WRITE"),
        _rule(ResourceType.TRANSACTIONAL_ID, other, "DESCRIBE"),
    ]
    add_acls(secured, *rules)
    before = topic_names(secured)
    wanted = RightsWanted(groups=(mine, other), transactional_ids=(mine, other))
    lacking = (Right("GROUP", other, "READ"), Right("TRANSACTIONAL_ID", other, "WRITE"))
    with _alice(secured) as alice:
        _becomes(alice, wanted, RightsFound(lacking, ()))
    assert topic_names(secured) == before, "no coordinator was looked for: that would make its topic"
    with Cluster(ClientSettings(endpoints(secured.bootstrap))) as administrator:
        assert not {t.transactional_id for t in list_transactions(administrator)} & {mine, other}
        assert find_rights(administrator, wanted) == _NOTHING


def test_acls_and_quotas_are_the_clusters(secured: SecuredKafka) -> None:
    wanted = RightsWanted(acls=True, quotas=True)
    where = "CLUSTER", "kafka-cluster"
    with _alice(secured) as alice:
        lacking = tuple(Right(*where, each) for each in ("ALTER", "ALTER_CONFIGS", "DESCRIBE"))
        _becomes(alice, wanted, RightsFound(lacking, (Right(*where, "DESCRIBE_CONFIGS"),)))
        rule = _rule(ResourceType.BROKER, "kafka-cluster", "ALTER")
        add_acls(secured, rule)
        try:
            lacking = tuple(Right(*where, each) for each in ("ALTER_CONFIGS", "DESCRIBE_CONFIGS"))
            _becomes(alice, wanted, RightsFound(lacking, ()))
        finally:
            delete_acls(secured, rule)
