"""The contents of a Kafka backup, as `info` reports them: topics, partitions, groups, gaps. Pure.

`report` reads nothing itself: it sums up the cluster record, the manifest and the segment rows. Light to import, so
that commands which never call it start quickly.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import msgspec

from logkeep.kafka.client.topology import is_internal
from logkeep.kafka.record.restore_needs import RestoreNeeds, restore_needs
from logkeep.kafka.record.topic_sets import TopicSet, topic_sets

if TYPE_CHECKING:
    from logkeep.kafka.record.documents import ClusterRecord, GroupRecord, PartitionRecord, TopicRecord
    from logkeep.kafka.record.import_label import ImportLabel
    from logkeep.model.findings import Finding
    from logkeep.model.segments import LogName
    from logkeep.repository.backups.manifest import KnownGap, Manifest
    from logkeep.repository.parts import LogTotals

ACLS_DENIED = "ACLs are not in this backup: "
"""Such a finding continues with the reason."""
METADATA_MISSING = "metadata-missing"
"""The code of a finding: a salvage found no metadata log."""


class GapReport(msgspec.Struct, frozen=True, kw_only=True):
    """Offsets `[start, end)` that could not be archived, and why."""

    partition: int
    start: int
    end: int
    reason: str


class PartitionReport(msgspec.Struct, frozen=True, kw_only=True):
    """One log: offsets `[start, end)`, the last stable offset, and times in ms since 1970, null if unknown."""

    partition: int
    history: str
    histories: int
    """The number of this history among those of the topic id: more than 1 after a lost end."""
    began: str | None
    """Why a new history began, if it began with this backup."""
    start: int
    end: int
    last_stable: int
    unproven_from: int | None
    """Records from here on were salvaged above every known high watermark: the cluster may not have committed them."""
    segments: int
    records: int
    """How many records there are, without buried ones."""
    stored_bytes: int
    plain_bytes: int
    oldest_ms: int | None
    newest_ms: int | None
    at_most: bool
    """Records, bytes and newest time are upper limits: they are those of merged objects, which reach beyond the cut, or
    of a folded log, which has records for other backups too."""
    buried: int = 0
    """Archived records that this backup leaves out, because their keys were deleted at the source."""
    folded_to: int | None = None
    """Below this offset the log was folded: only the cuts of kept backups are restore points."""


class TopicReport(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    id: str
    internal: bool
    partitions: int
    replication_factor: int
    configs: dict[str, str]
    """The configs that differ from the defaults."""
    offsets: int
    """Offsets that are covered; not every one has a record."""
    records: int
    stored_bytes: int
    plain_bytes: int
    oldest_ms: int | None
    newest_ms: int | None
    open_transactions: int
    """How many transactions are open at the cut."""
    gaps: tuple[GapReport, ...]
    logs: tuple[PartitionReport, ...]

    @property
    def missing(self) -> int:
        return sum(gap.end - gap.start for gap in self.gaps)


class GroupTopicReport(msgspec.Struct, frozen=True, kw_only=True):
    """The offsets of a group in one topic."""

    topic: str
    partitions: int
    """How many partitions have a committed offset."""
    lag: int | None
    """Records between the committed offsets and the cut; null if the topic is not in this backup."""
    below_start: int
    """Partitions in which retention had deleted the record at the committed offset."""
    clamped: int
    """Partitions in which the committed offset was beyond the cut and is recorded as the cut."""


class GroupReport(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    kind: str
    state: str
    lag: int
    topics: tuple[GroupTopicReport, ...]


class ImportReport(msgspec.Struct, frozen=True, kw_only=True):
    """The dataset or archive that a backup was imported from."""

    format: str
    tool: str
    tool_version: str
    """Empty if the dataset does not have it."""
    unknown: tuple[str, ...]
    """What the tool could not archive."""
    url: str


class KafkaReport(msgspec.Struct, frozen=True, kw_only=True):
    """Topics by size, the largest first; groups by lag, the largest first."""

    cluster_id: str
    topics: tuple[TopicReport, ...]
    groups: tuple[GroupReport, ...]
    acls: int | None
    """Null if the cluster has no authorizer, or the backup's user could not list ACLs."""
    quotas: int
    scram_credentials: int | None
    """How many credentials are archived, encrypted; null if the backup was taken without --scram-to."""
    needs: RestoreNeeds
    chosen_topics: bool = False
    """Topics were chosen for this backup: groups without an offset in them are not in it."""
    acls_unknown: str | None = None
    """Why `acls` is null."""
    sets: tuple[TopicSet, ...] = ()
    """Topics that belong together: of Kafka Connect clusters and Kafka Streams applications."""
    imported: ImportReport | None = None
    """What the backup was imported from; null if it was not imported."""


def report(
    record: "ClusterRecord",
    manifest: "Manifest",
    totals: "Mapping[LogName, LogTotals]",
    scram_credentials: int | None = None,
    buried: "Mapping[LogName, int] | None" = None,
    folded_to: "Mapping[LogName, int] | None" = None,
    label: "ImportLabel | None" = None,
) -> KafkaReport:
    """`totals` are those of the backup's segment rows, `buried` the number of buried offsets in its cut, by log.

    `folded_to`: below this offset a log was folded.
    """
    folded = {(log.name, log.partition): end for log, end in (folded_to or {}).items()}
    hidden = {(log.name, log.partition): number for log, number in (buried or {}).items()}
    logs = _by_topic(record.logs)
    found = {(log.name, log.partition): each for log, each in totals.items()}
    gaps = _gaps(manifest.gaps)
    began = {f.where: f.what for f in manifest.findings if f.code == "new-history"}
    opened: dict[str, int] = {}
    for each in record.open_transactions:
        opened[each.topic] = opened.get(each.topic, 0) + 1
    topics = [
        _topic(t, [
            _partition(log, found.get((t.name, log.partition)), began, hidden.get((t.name, log.partition), 0),
                       folded.get((t.name, log.partition)))
            for log in logs.get(t.name, ())
        ],
               gaps.get(t.name, ()), opened.get(t.name, 0))
        for t in record.topics
    ]  # fmt: skip
    topics.sort(key=lambda t: (-t.stored_bytes, t.name))
    spans = {(log.topic, log.partition): log for log in record.logs}
    groups = sorted((_group(g, spans) for g in record.groups), key=lambda g: (-g.lag, g.name))
    return KafkaReport(
        cluster_id=record.cluster_id,
        topics=tuple(topics),
        groups=tuple(groups),
        acls=None if record.acls is None else len(record.acls),
        quotas=len(record.quotas),
        scram_credentials=scram_credentials,
        needs=restore_needs(topics, record),
        chosen_topics=record.chosen is True,
        acls_unknown=_why_unknown(manifest.findings, label) if record.acls is None else None,
        sets=topic_sets(record.topics, record.groups),
        imported=_imported(label) if label is not None else None,
    )


def _imported(found: "ImportLabel") -> ImportReport:
    label = found.label
    return ImportReport(
        format=label.format, tool=label.tool, tool_version=label.version, unknown=label.unknown, url=found.url
    )


def _why_unknown(findings: "Iterable[Finding]", label: "ImportLabel | None") -> str:
    """Why a backup has no ACLs, by its findings: its user could not list them, or a salvage had no metadata log."""
    if label is not None:
        return "the dataset does not have them"
    for finding in findings:
        if finding.what.startswith(ACLS_DENIED):
            return finding.what.removeprefix(ACLS_DENIED)
        if finding.code == METADATA_MISSING:
            return "no metadata log was readable"
    return "no authorizer was found"


def _by_topic(logs: "Iterable[PartitionRecord]") -> "dict[str, list[PartitionRecord]]":
    found: dict[str, list[PartitionRecord]] = {}
    for log in logs:
        found.setdefault(log.topic, []).append(log)
    return found


def _gaps(known: "Iterable[KnownGap]") -> dict[str, list[GapReport]]:
    found: dict[str, list[GapReport]] = {}
    for gap in known:
        made = GapReport(partition=gap.log.partition, start=gap.start, end=gap.end, reason=gap.reason)
        found.setdefault(gap.log.name, []).append(made)
    return found


def _partition(
    log: "PartitionRecord", totals: "LogTotals | None", began: Mapping[str, str], buried: int, folded_to: int | None
) -> PartitionReport:
    _, _, number = log.history.partition("-")
    return PartitionReport(
        partition=log.partition,
        history=log.history,
        histories=int(number) + 1 if number.isdigit() else 1,
        began=began.get(f"{log.topic}/{log.partition}") or began.get(f"{log.topic}-{log.partition}"),
        start=log.start,
        end=log.end,
        last_stable=log.last_stable,
        unproven_from=log.unproven_from if log.unproven_from >= 0 else None,
        segments=totals.segments if totals else 0,
        records=max(totals.records - buried, 0) if totals else 0,
        stored_bytes=totals.stored_bytes if totals else 0,
        plain_bytes=totals.plain_bytes if totals else 0,
        oldest_ms=_known_time(totals.base_time_ms if totals else -1),
        newest_ms=_known_time(totals.max_time_ms if totals else -1),
        at_most=totals is not None and (totals.end > log.end or (folded_to is not None and log.end < folded_to)),
        buried=buried,
        folded_to=folded_to,
    )


def _known_time(time_ms: int) -> int | None:
    """Producers may leave times out (-1), and some write even smaller numbers."""
    return time_ms if time_ms >= 0 else None


def _topic(
    topic: "TopicRecord", logs: list[PartitionReport], gaps: Iterable[GapReport], open_transactions: int
) -> TopicReport:
    return TopicReport(
        name=topic.name,
        id=topic.id,
        internal=is_internal(topic.name, topic.internal),
        partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        configs=topic.configs,
        offsets=sum(log.end - log.start for log in logs),
        records=sum(log.records for log in logs),
        stored_bytes=sum(log.stored_bytes for log in logs),
        plain_bytes=sum(log.plain_bytes for log in logs),
        oldest_ms=min((log.oldest_ms for log in logs if log.oldest_ms is not None), default=None),
        newest_ms=max((log.newest_ms for log in logs if log.newest_ms is not None), default=None),
        open_transactions=open_transactions,
        gaps=tuple(gaps),
        logs=tuple(sorted(logs, key=lambda log: log.partition)),
    )


def _group(group: "GroupRecord", spans: "Mapping[tuple[str, int], PartitionRecord]") -> GroupReport:
    commits: dict[str, list[tuple[PartitionRecord | None, int, int]]] = {}
    for c in group.commits:
        commits.setdefault(c.topic, []).append((spans.get((c.topic, c.partition)), c.offset, c.committed))
    topics = [_group_topic(name, some) for name, some in commits.items()]
    topics.sort(key=lambda t: (-(t.lag or 0), t.topic))
    lag = sum(t.lag or 0 for t in topics)
    return GroupReport(name=group.name, kind=group.kind, state=group.state, lag=lag, topics=tuple(topics))


def _group_topic(topic: str, commits: "list[tuple[PartitionRecord | None, int, int]]") -> GroupTopicReport:
    known = [(log, offset) for log, offset, _ in commits if log is not None]
    return GroupTopicReport(
        topic=topic,
        partitions=len(commits),
        lag=sum(log.end - offset for log, offset in known) if known else None,
        below_start=sum(offset < log.start for log, offset in known),
        clamped=sum(offset != committed for _, offset, committed in commits),
    )
