"""Topics that a backup misses because its user may not see them.

A broker lists only topics that the user may DESCRIBE. But the sizes on its disks, which need DESCRIBE on the cluster,
come with the names of all topics: a topic that is on a disk and not in the list is hidden from this user. A request
for its name is refused, unlike for a topic that was created or deleted a moment ago. Without DESCRIBE on the cluster
hidden topics are not known; the backup then has a note that says so.
"""

from collections.abc import Callable, Iterable, Sequence

from logkeep.errors import NotAuthorised, TopicMissing
from logkeep.kafka.admin.topics import ReplicaSize
from logkeep.kafka.client.topology import ClusterMetadata, is_internal
from logkeep.kafka.topic_selection import TopicFilter
from logkeep.model.findings import Finding, Severity


def unlisted_topics(replicas: Iterable[ReplicaSize], metadata: ClusterMetadata, selects: TopicFilter) -> list[str]:
    """Selected topics that are on a disk, but not in the list. Pure."""
    listed = {t.name for t in metadata.topics} | {t.name for t in metadata.unready}
    names = {r.log.topic for r in replicas} - listed
    return sorted(name for name in names if selects(name, is_internal(name, False)))


def hidden_topics(names: Sequence[str], ask: Callable[[str], object]) -> list[str]:
    """Topics for which `ask` is refused; the others were created or deleted meanwhile."""
    return [name for name in names if _refused(name, ask)]


def _refused(name: str, ask: Callable[[str], object]) -> bool:
    try:
        ask(name)
    except NotAuthorised:
        return True
    except TopicMissing:
        return False
    return False


def hidden_finding(name: str) -> Finding:
    return Finding(
        code="topic-hidden",
        severity=Severity.WARNING,
        where=name,
        what="it exists and is not in this backup, nor are group offsets in it: this user may not DESCRIBE it",
        remedy="grant READ, DESCRIBE and DESCRIBE_CONFIGS on it, or leave it out with --exclude",
    )


def blind_finding(cluster_id: str) -> Finding:
    return Finding(
        code="list-limited",
        severity=Severity.NOTE,
        where=cluster_id,
        what="without DESCRIBE on the cluster only topics and groups that this user may DESCRIBE are seen; "
        "whether there are others is not known",
        remedy="grant DESCRIBE on the cluster",
    )
