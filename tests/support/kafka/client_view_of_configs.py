"""Configs, ACLs, topics and groups of a broker as clients see them that are not ours."""

from collections.abc import Iterable

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    ConfigSource,
    ResourcePatternType,
    ResourceType,
)

from logkeep.embedded.kafka import EmbeddedKafka
from tests.support.processes import wait_for

EVERY_ACL = AclBindingFilter(
    ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
)


def admin(kafka: EmbeddedKafka) -> AdminClient:
    """Keep it until its answers are there: they end with it."""
    return AdminClient({"bootstrap.servers": kafka.bootstrap})


def own_configs(kafka: EmbeddedKafka, topic: str) -> dict[str, str]:
    """Those that are set on the topic itself."""
    return configs_of(kafka, [topic])[topic]


def configs_of(kafka: EmbeddedKafka, topics: Iterable[str]) -> dict[str, dict[str, str]]:
    """By topic, those that are set on it."""
    client, source = admin(kafka), ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    resources = [ConfigResource(ConfigResource.Type.TOPIC, topic) for topic in topics]
    asked = client.describe_configs(resources) if resources else {}
    return {
        resource.name: {name: each.value for name, each in found.result(30).items() if each.source == source}
        for resource, found in asked.items()
    }


def topic_names(kafka: EmbeddedKafka) -> set[str]:
    return set(admin(kafka).list_topics(timeout=30).topics)


def delete_topic(kafka: EmbeddedKafka, topic: str) -> None:
    client = admin(kafka)
    for future in client.delete_topics([topic]).values():
        future.result(30)
    wait_for(lambda: topic not in topic_names(kafka), "the topic to go")


def group_names(kafka: EmbeddedKafka) -> set[str]:
    client = admin(kafka)
    return {each.group_id for each in client.list_consumer_groups().result(30).valid}


def delete_groups(kafka: EmbeddedKafka, *groups: str) -> None:
    client = admin(kafka)
    for future in (client.delete_consumer_groups(list(groups)) if groups else {}).values():
        future.result(30)


def acls(kafka: EmbeddedKafka) -> set[AclBinding]:
    client = admin(kafka)
    return set(client.describe_acls(EVERY_ACL).result(30))


def add_acls(kafka: EmbeddedKafka, *rules: AclBinding) -> None:
    client = admin(kafka)
    for each in client.create_acls(list(rules)).values():
        each.result(30)


def delete_acls(kafka: EmbeddedKafka, *rules: AclBinding) -> None:
    client = admin(kafka)
    for rule in rules:
        exactly = AclBindingFilter(
            rule.restype,
            rule.name,
            rule.resource_pattern_type,
            rule.principal,
            rule.host,
            rule.operation,
            rule.permission_type,
        )
        for each in client.delete_acls([exactly]).values():
            each.result(30)
