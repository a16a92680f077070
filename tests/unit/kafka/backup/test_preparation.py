"""What a run compares with its plan."""

from logkeep.kafka.backup.plan import plan_backup
from logkeep.kafka.backup.preparation import PreparedBackup, PreviousBackup
from logkeep.kafka.client.topology import TopicPartition
from tests.support.kafka.cluster_values import OTHER_ID, bounds, facts, topic

ORDERS, CARTS = topic("orders"), topic("carts", topic_id=OTHER_ID)
ENDS = {TopicPartition("orders", 0): bounds(0, 9), TopicPartition("carts", 0): bounds(0, 9)}


def test_a_topic_that_was_deleted_or_created_again_is_missing_in_another_plan() -> None:
    before = facts((ORDERS, CARTS), ENDS, {})
    plan = plan_backup(before.topics, before.bounds, before.sizes, {})
    prepared = PreparedBackup(before, PreviousBackup(), plan, (), 1)
    assert prepared.removed_topics(facts((ORDERS,), ENDS, {})) == {"carts"}
    assert prepared.removed_topics(facts((topic("orders", topic_id=OTHER_ID), CARTS), ENDS, {})) == {"orders"}
    assert prepared.removed_topics(facts((topic("new"), ORDERS, CARTS), ENDS, {})) == set()
