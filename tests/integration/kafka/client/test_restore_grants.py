"""ACLs and quotas come back, and the sets are equal again: Apache's tools and another client judge."""

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.kafka.admin.security import list_acls, list_quotas
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.settings import ClientSettings, endpoints
from logkeep.kafka.record.documents import AclRecord, QuotaRecord
from logkeep.kafka.restore.security import AclPlan, apply_acls, apply_quotas, plan_acls, plan_quotas
from tests.support.kafka.client_view_of_configs import acls, add_acls, delete_acls
from tests.support.processes import wait_for
from tests.support.servers.secured_kafka import SecuredKafka

pytestmark = [pytest.mark.xdist_group("kafka-secured"), pytest.mark.usefixtures("as_before")]
_LITERAL, _PREFIXED = ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED
_ALLOW, _DENY = AclPermissionType.ALLOW, AclPermissionType.DENY
_RULES = [
    AclBinding(ResourceType.TOPIC, "orders", _LITERAL, "User:bob", "*", AclOperation.READ, _ALLOW),
    AclBinding(ResourceType.TOPIC, "orders", _LITERAL, "User:bob", "10.0.0.1", AclOperation.READ, _DENY),
    AclBinding(ResourceType.TOPIC, "or", _PREFIXED, "User:bob", "*", AclOperation.WRITE, _ALLOW),
    AclBinding(ResourceType.TOPIC, "*", _LITERAL, "User:carol", "*", AclOperation.DESCRIBE, _ALLOW),
    AclBinding(ResourceType.GROUP, "orders", _LITERAL, "User:bob", "*", AclOperation.ALL, _ALLOW),
    AclBinding(ResourceType.BROKER, "kafka-cluster", _LITERAL, "User:carol", "*", AclOperation.ALTER_CONFIGS, _ALLOW),
    AclBinding(ResourceType.TRANSACTIONAL_ID, "t-", _PREFIXED, "User:CN=ü", "*", AclOperation.WRITE, _ALLOW),
]


@pytest.fixture
def administrator(secured: SecuredKafka) -> Iterator[Cluster]:
    with Cluster(ClientSettings(endpoints(secured.bootstrap))) as made:
        yield made


def _archived(cluster: Cluster) -> list[AclRecord]:
    found = list_acls(cluster)
    assert found is not None
    return [
        AclRecord(a.resource_type, a.resource_name, a.pattern, a.principal, a.host, a.operation, a.permission)
        for a in found
    ]


def test_acls(secured: SecuredKafka, administrator: Cluster) -> None:
    add_acls(secured, *_RULES)
    wait_for(lambda: acls(secured) >= set(_RULES), "the rules")
    before, archived = acls(secured), _archived(administrator)
    delete_acls(secured, *_RULES)
    wait_for(lambda: not acls(secured) & set(_RULES), "the rules to go")
    plan = plan_acls(archived, list_acls(administrator), {})
    assert (len(plan.add), len(plan.present)) == (len(_RULES), len(before) - len(_RULES))
    assert apply_acls(administrator, plan) == []
    wait_for(lambda: acls(secured) == before, "the same rules as before")
    renamed = plan_acls(archived, list_acls(administrator), {"orders": "copies"})
    assert {a.resource_name for a in renamed.add} == {"copies"}
    assert apply_acls(administrator, renamed) == []
    more = {
        AclBinding(r.restype, "copies", _LITERAL, r.principal, r.host, r.operation, r.permission_type)
        for r in _RULES[:2]
    }
    wait_for(lambda: acls(secured) == before | more, "rules for the new name too")
    delete_acls(secured, *_RULES, *more)


def test_a_rule_of_a_newer_kafka_is_a_finding(secured: SecuredKafka, administrator: Cluster) -> None:
    archived = [
        AclRecord("TOPIC", "orders", "LITERAL", "User:dave", "*", operation, "ALLOW") for operation in ("READ", "99")
    ]
    plan = plan_acls(archived, list_acls(administrator), {})
    (finding,) = apply_acls(administrator, plan)
    assert finding.code == "acl-refused"
    assert "99 on TOPIC orders" in finding.where
    good = AclBinding(ResourceType.TOPIC, "orders", _LITERAL, "User:dave", "*", AclOperation.READ, _ALLOW)
    wait_for(lambda: good in acls(secured), "the other rule")
    delete_acls(secured, good)


def test_no_authorizer_is_a_finding(cluster: Cluster, administrator: Cluster) -> None:
    archived = _archived(administrator)
    plan = plan_acls(archived, list_acls(cluster), {})
    assert [f.code for f in plan.findings] == ["authorizer-missing"]
    wanted = plan_acls(archived, (), {}).add
    (finding,) = apply_acls(cluster, AclPlan(wanted, (), 0))
    assert finding.code == "authorizer-missing"


def _quotas(cluster: Cluster) -> set[tuple[frozenset[tuple[str, str | None]], tuple[tuple[str, float], ...]]]:
    return {(frozenset(q.entity), q.limits) for q in list_quotas(cluster)}


def _remove(cluster: Cluster, quotas: list[QuotaRecord]) -> None:
    """The broker is shared, and so are its limits."""
    entries = [
        {
            "entity": [{"entity_type": kind, "entity_name": name} for kind, name in q.entity],
            "ops": [{"key": key, "value": 0.0, "remove": True} for key, _ in q.limits],
        }
        for q in quotas
    ]
    reply = cluster.ask_any("AlterClientQuotas", {"entries": entries, "validate_only": False})
    assert {each.error_code for each in reply.entries} == {0}


def test_quotas(kafka: EmbeddedKafka, cluster: Cluster) -> None:
    archived = [
        QuotaRecord((("user", "bob"),), (("consumer_byte_rate", 1e9), ("producer_byte_rate", 2e9))),
        QuotaRecord((("user", None), ("client-id", "eager")), (("request_percentage", 912.5),)),
        QuotaRecord((("client-id", None),), (("producer_byte_rate", 4e9),)),
        QuotaRecord((("ip", "127.0.0.9"),), (("connection_creation_rate", 7000.0),)),
    ]
    odd = QuotaRecord((("user", "odd"),), (("no_such_rate", 7.0),))
    before = _quotas(cluster)
    try:
        (finding,) = apply_quotas(cluster, plan_quotas([*archived, odd], list_quotas(cluster)))
        assert (finding.code, finding.where) == ("quota-refused", "user odd")
        after = before | {(frozenset(q.entity), q.limits) for q in archived}
        wait_for(lambda: _quotas(cluster) == after, "all quotas")
        again = plan_quotas(archived, list_quotas(cluster))
        assert (again.add, again.present, again.findings) == ((), 5, ())
        asked = ["--bootstrap-server", kafka.bootstrap, "--describe", "--entity-type", "users", "--entity-name", "bob"]
        told = kafka.java_tool("kafka.admin.ConfigCommand", asked)
        assert "consumer_byte_rate=1.0E9" in told
        assert "producer_byte_rate=2.0E9" in told
    finally:
        _remove(cluster, archived)
    wait_for(lambda: _quotas(cluster) == before, "the quotas to go")
