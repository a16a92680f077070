"""The inventory of a salvage: which directories are copies of which log, and which are left out. Pure.

If the metadata log is readable, it gives each topic's id. Otherwise the most frequent id in the directories of a topic
counts. A topic that the metadata log lacks is archived too, with a warning: it may have been deleted while its broker
was dead, or created after the last flush.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from uuid import UUID

from logkeep.kafka.client.topology import Partition, Topic, TopicPartition, is_internal
from logkeep.kafka.disks.directories import FoundCopy
from logkeep.kafka.disks.layout import LogDirState
from logkeep.kafka.disks.metadata_image import ClusterImage
from logkeep.model.findings import Finding, Severity

NO_ID = UUID(int=0)
_WHY = {
    LogDirState.DELETED: "its topic or partition was deleted, and the files were about to be removed",
    LogDirState.STRAY: "its broker was no longer a replica of this partition",
    LogDirState.FUTURE: "it was being moved to another directory, and the original is here",
}


@dataclass(frozen=True)
class Inventory:
    topics: tuple[Topic, ...]
    """With the partitions that are on these disks."""
    copies: Mapping[TopicPartition, tuple[FoundCopy, ...]]
    findings: tuple[Finding, ...]

    @cached_property
    def ids(self) -> dict[str, UUID]:
        return {t.name: t.id for t in self.topics}


def take_inventory(copies: Iterable[FoundCopy], image: ClusterImage | None) -> Inventory:
    """Assign the directories to topics and partitions."""
    findings: list[Finding] = []
    usable = _usable(copies, findings)
    ids = _ids(usable, image)
    kept: dict[TopicPartition, list[FoundCopy]] = {}
    for each in usable:
        if each.topic_id in (None, ids[each.log.topic]):
            kept.setdefault(each.log, []).append(each)
        else:
            findings.append(_left_out(each, "it belongs to another topic of the same name", Severity.WARNING))
    by_topic: dict[str, list[Partition]] = {name: [] for name in ids}
    for log, some in sorted(kept.items()):
        by_topic[log.topic].append(_partition(log, some, image))
    topics = [Topic(n, ids[n], is_internal(n, False), tuple(some)) for n, some in sorted(by_topic.items()) if some]
    if image is not None:
        findings += [_unknown(t.name) for t in topics if t.name not in image.topics]
    return Inventory(tuple(topics), {log: tuple(some) for log, some in sorted(kept.items())}, tuple(findings))


def _usable(copies: Iterable[FoundCopy], findings: list[Finding]) -> list[FoundCopy]:
    found = list(copies)
    current = [c for c in found if c.state is LogDirState.CURRENT]
    logs, usable = {c.log for c in current}, list(current)
    for each in found:
        if each.state is LogDirState.FUTURE and each.log not in logs:
            usable.append(each)
            what = f"{each.copy.directory} is the only copy here: it was being moved elsewhere, and may be short"
            findings.append(Finding(code="future-copy", severity=Severity.WARNING, where=str(each.log), what=what))
        elif each.state is not LogDirState.CURRENT:
            findings.append(_left_out(each, _WHY[each.state], Severity.NOTE))
    return usable


def _ids(copies: Iterable[FoundCopy], image: ClusterImage | None) -> dict[str, UUID]:
    votes: dict[str, Counter[UUID]] = {}
    for each in copies:
        votes.setdefault(each.log.topic, Counter())[each.topic_id or NO_ID] += each.topic_id is not None
    known = image.topics if image is not None else {}
    return {topic: known.get(topic) or max(some, key=lambda i: (some[i], i)) for topic, some in votes.items()}


def _partition(log: TopicPartition, copies: Iterable[FoundCopy], image: ClusterImage | None) -> Partition:
    known = image.replicas_of(*log) if image is not None else ()
    return Partition(log.partition, 0, -1, known or tuple(sorted({c.copy.node for c in copies})))


def _left_out(copy: FoundCopy, why: str, severity: Severity) -> Finding:
    return Finding(code="directory-left-out", severity=severity, where=copy.copy.directory, what=f"left out: {why}")


def _unknown(topic: str) -> Finding:
    return Finding(
        code="topic-unknown",
        severity=Severity.WARNING,
        where=topic,
        what="it is not in the metadata log: it was deleted, or created after the last flush; it is archived",
    )


def missing_partitions(
    topics: Iterable[Topic], image: ClusterImage | None, archived: Iterable[TopicPartition]
) -> list[Finding]:
    """Partitions of the selected topics that are on none of these disks, and their brokers."""
    there = set(archived)
    findings = []
    for topic in topics:
        here = {p.index for p in topic.partitions}
        known = image.replicas.get(topic.id, {}) if image is not None else {}
        for index in sorted({*range(max(here, default=-1) + 1), *known} - here):
            who = ", ".join(map(str, known.get(index, ()))) or "unknown brokers"
            log = TopicPartition(topic.name, index)
            kept = "; its archived records stay in this backup" if log in there else ""
            findings.append(
                Finding(
                    code="partition-missing",
                    severity=Severity.WARNING,
                    where=str(log),
                    what=f"it is on none of these disks; copies were on {who}{kept}",
                    remedy="add the directories of those brokers to --log-dirs",
                )
            )
    return findings
