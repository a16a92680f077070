"""The questions behind `rights`: asked of the brokers, and none of them changes anything."""

from logkeep.kafka.admin.configs import ConfigChange, alter_topic_configs
from logkeep.kafka.admin.granting import alter_quotas
from logkeep.kafka.admin.permissions import (
    cluster_operations,
    group_read_code,
    topic_operations,
    transactional_describe_code,
    transactional_write_code,
)
from logkeep.kafka.admin.security import Quota
from logkeep.kafka.admin.topic_changes import NewTopic, create_topics
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.error_codes import OK
from logkeep.kafka.client.settings import ClientSettings
from logkeep.kafka.restore.rights import Answers, RightsFound, RightsWanted, judged

_HARMLESS = ConfigChange({"retention.ms": "-1"})
_SOME_QUOTA = Quota((("user", None),), (("producer_byte_rate", 2.0**50),))
"""Only ever validated."""


def find_rights(cluster: Cluster, wanted: RightsWanted) -> RightsFound:
    """What this user may not do of what is wanted."""
    return judged(wanted, _answers(cluster, wanted))


def _answers(cluster: Cluster, wanted: RightsWanted) -> Answers:
    told = {name: allowed for name, (_, allowed) in topic_operations(cluster, wanted.topics).items()}
    hidden = [name for name, allowed in told.items() if allowed is None]
    new = [NewTopic(name, 1, -1) for name in wanted.new_topics]
    _, not_created = create_topics(cluster, new, validate_only=True)
    not_altered = alter_topic_configs(cluster, dict.fromkeys(hidden, _HARMLESS), validate_only=True)
    operations = cluster_operations(cluster)
    asks_quotas = wanted.quotas and operations is None
    not_limited = alter_quotas(cluster, [_SOME_QUOTA], validate_only=True) if asks_quotas else {}
    return Answers(
        topics=told,
        creating={name: each.code for name, each in not_created.items()},
        altering={name: each.code for name, each in not_altered.items()},
        groups={name: group_read_code(cluster, name) for name in wanted.groups},
        describing_ids={each: transactional_describe_code(cluster, each) for each in wanted.transactional_ids},
        writing_ids={each: transactional_write_code(cluster, each) for each in wanted.transactional_ids},
        cluster=operations,
        quotas=not_limited[_SOME_QUOTA].code if not_limited else OK,
    )


def principal_of(settings: ClientSettings) -> str:
    """Whom rights would be granted to, as far as the client knows how the brokers name it."""
    return f"User:{settings.sasl.username}" if settings.sasl and settings.sasl.username else "User:NAME"
