"""A topic on a disk and not in the list is hidden, if a request for it is refused."""

from logkeep.errors import NotAuthorised, TopicMissing
from logkeep.kafka.admin.topics import ReplicaSize
from logkeep.kafka.backup.visibility import hidden_topics, unlisted_topics
from logkeep.kafka.client.topology import ClusterMetadata, TopicPartition, UnreadyTopic
from logkeep.kafka.topic_selection import topic_filter
from tests.support.kafka.cluster_values import topic

ON_DISK = tuple(
    ReplicaSize(TopicPartition(name, 0), 1, "/data", 10, 0, moving=False)
    for name in ("seen", "veiled", "veiled-test", "starting", "__consumer_offsets", "gone")
)
METADATA = ClusterMetadata("c", (), (topic("seen"),), (UnreadyTopic("starting", False, 5, passing=True),))


def test_only_what_was_meant_counts() -> None:
    everything = topic_filter((), (), internal=False)
    assert unlisted_topics(ON_DISK, METADATA, everything) == ["gone", "veiled", "veiled-test"]
    assert unlisted_topics(ON_DISK, METADATA, topic_filter((), (".*-test", "gone"), internal=False)) == ["veiled"]
    assert unlisted_topics(ON_DISK, METADATA, topic_filter((), ("veiled.*", "gone"), internal=True)) == [
        "__consumer_offsets"
    ]
    assert unlisted_topics(ON_DISK, METADATA, topic_filter(("seen",), (), internal=False)) == []


def test_a_topic_of_the_last_moment_is_not_hidden() -> None:
    def ask(name: str) -> None:
        if name == "veiled":
            raise NotAuthorised("no", subject=name)
        if name == "gone":
            raise TopicMissing("no", subject=name)

    assert hidden_topics(["gone", "made-just-now", "veiled"], ask) == ["veiled"]
