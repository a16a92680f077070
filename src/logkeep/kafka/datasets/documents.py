"""What a run writes into the document of a dataset: when it begins, when it ends, and for rewritten topics."""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

import msgspec

from logkeep.errors import Damaged, TargetUnsafe
from logkeep.kafka.datasets.deletion_rule import times_at_begin
from logkeep.kafka.datasets.formats import DatasetEnd
from logkeep.kafka.datasets.target import DatasetTarget
from logkeep.kafka.datasets.values import ExportableLogs, ExportedLog, LogToExport
from logkeep.kafka.record.dataset_document import DatasetDocument, DatasetLog, NotedLog, read_dataset_document
from logkeep.kafka.record.dataset_version import DOCUMENT, FOLDER
from logkeep.kafka.record.documents import CommitRecord, GroupRecord, TopicRecord

RESERVED: Final = frozenset({FOLDER, ".partial"})
"""Names of directories in a dataset: a topic must not have them."""
_encoder = msgspec.json.Encoder(order="deterministic")


def read_document(target: DatasetTarget) -> DatasetDocument | None:
    """The document of a dataset; None if there is none. Raises TargetUnsafe, and FormatTooNew for a later release."""
    try:
        return read_dataset_document(target.store)
    except Damaged as error:
        raise TargetUnsafe(error.what, subject=f"{target.url}/{DOCUMENT}") from error


def put_document(target: DatasetTarget, document: DatasetDocument, begun: DatasetDocument | None = None) -> None:
    """Store the document. Raises Locked if the present one is no longer the one that this run has begun with."""
    if begun is None:
        target.put(DOCUMENT, _encoder.encode(document))
    else:
        target.put_after(DOCUMENT, _encoder.encode(begun), _encoder.encode(document))


def begun_document(
    before: DatasetDocument | None,
    new: DatasetDocument,
    facts: ExportableLogs,
    logs: Iterable[LogToExport],
    rewritten: Collection[str] = (),
) -> DatasetDocument:
    """The document when a run begins: it names logs, histories and topics before the dataset has a record of them, and
    lost offsets before it has a record after them. If the run is killed, the next one judges by these times whether
    deletions are missing.

    Topics of --rewrite replace the old ones only at the end, perhaps before the document is written again. So the
    document does not note their files meanwhile.
    """
    old = before if before is not None else new
    topics, noted = {t.name for t in old.topics}, dict(old.noted)
    for each in logs:
        known = noted.get(each.log)
        if known is None or each.log.topic not in rewritten:
            named = named_log(known, each)
            starts = (*named.starts[:1], *(start for start in named.starts[1:] if start <= each.last))
            times = times_at_begin(each, known, facts)
            noted[each.log] = msgspec.structs.replace(named, pending=each.lost, starts=starts, deletions=times)
        else:
            noted[each.log] = msgspec.structs.replace(known, starts=())
    new_topics = [t for t in facts.topics if t.name not in topics]
    return msgspec.structs.replace(
        old,
        topics=tuple(sorted((*old.topics, *new_topics), key=lambda t: t.name)),
        logs=tuple(noted[log] for log in sorted(noted)),
        configs_known=_configs_known(old, {t.name for t in new_topics}, known=facts.configs_known),
    )


def _configs_known(before: DatasetDocument, topics: Collection[str], *, known: bool) -> tuple[str, ...]:
    """The topics of known configs, after these ones were taken from another source."""
    kept = before.topics_of_known_configs.difference(topics)
    return tuple(sorted(kept.union(topics if known else ())))


def named_log(known: NotedLog | None, planned: LogToExport) -> NotedLog:
    """The note of a log with the whole name of its history, once a backup has shown it: one that ends before the
    dataset does may have another history."""
    source = planned.source
    if known is None:
        topic, partition = source.log
        return NotedLog(topic=topic, partition=partition, history=source.history, archived=not source.live)
    if source.live or planned.last >= source.end:
        return known
    return msgspec.structs.replace(known, history=source.history, archived=True)


def with_files(now: NotedLog, before: NotedLog | None, end: DatasetEnd, done: ExportedLog | None) -> NotedLog:
    """The note of a log with the files that were there before this run, and those that it added. A file that was noted
    and is missing stays noted, with two exceptions: at the end, which this run has written again, none does, and at the
    start only the oldest one does."""
    there = {*end.starts, *(done.starts if done is not None else ())}
    noted = before.starts if before is not None else ()
    last = -1 if end.last is None else end.last
    first = min(there, default=last)
    gone = (start for start in noted if first < start <= last)
    return msgspec.structs.replace(now, starts=tuple(sorted(there.union(gone, noted[:1]))))


def without_files(document: DatasetDocument, deleted: Mapping[DatasetLog, int]) -> DatasetDocument:
    """The document without the files that are deleted on purpose: of each log, those up to the one with this first
    offset."""
    logs = (
        msgspec.structs.replace(note, starts=tuple(s for s in note.starts if s > deleted.get(note.log, -1)))
        for note in document.logs
    )
    return msgspec.structs.replace(document, logs=tuple(logs))


def joined_document(
    before: DatasetDocument | None,
    new: DatasetDocument,
    facts: ExportableLogs,
    logs: Iterable[NotedLog],
    older: Collection[str] = (),
) -> DatasetDocument:
    """The document with these logs, the topics and groups of these facts, and all that is known of other topics.

    `older`: topics that the facts describe at an earlier time than the document does. What it says of them stays, and
    so do its ACLs and quotas.
    """
    old = before if before is not None else new
    now = [t for t in facts.topics if t.name not in older]
    topics = {t.name: t for t in (*old.topics, *now)}
    noted = {each.log: each for each in (*old.logs, *logs)}
    acls, quotas = (old.acls, old.quotas) if older else (facts.acls, facts.quotas)
    return msgspec.structs.replace(
        new,
        topics=tuple(topics[name] for name in sorted(topics)),
        logs=tuple(noted[log] for log in sorted(noted)),
        groups=_joined_groups(old.groups, facts.groups, {t.name for t in now}),
        acls=acls if acls is not None else old.acls,
        quotas=quotas or old.quotas,
        configs_known=_configs_known(old, {t.name for t in now}, known=facts.configs_known),
    )


def with_topics(document: DatasetDocument | None, new: DatasetDocument, names: Collection[str]) -> DatasetDocument:
    """The document with everything that another one says of these topics."""
    if document is None:
        return new
    topics = {t.name: t for t in document.topics} | {t.name: t for t in new.topics if t.name in names}
    logs = {log: note for log, note in document.noted.items() if log.topic not in names}
    logs |= {log: note for log, note in new.noted.items() if log.topic in names}
    known = new.topics_of_known_configs.intersection(names)
    return msgspec.structs.replace(
        document,
        topics=tuple(topics[name] for name in sorted(topics)),
        logs=tuple(logs[log] for log in sorted(logs)),
        groups=_joined_groups(document.groups, new.groups, names),
        configs_known=tuple(sorted(known.union(document.topics_of_known_configs.difference(names)))),
    )


def without_logs(document: DatasetDocument | None, topics: Collection[str]) -> DatasetDocument | None:
    """The document without the logs of these topics: others take their place."""
    if document is None:
        return None
    return msgspec.structs.replace(document, logs=tuple(n for n in document.logs if n.topic not in topics))


def _joined_groups(
    old: Iterable[GroupRecord], new: Iterable[GroupRecord], chosen: Iterable[str]
) -> tuple[GroupRecord, ...]:
    """Commits in the chosen topics as they are now, and others as they were."""
    topics = frozenset(chosen)
    found = {g.name: _within(g, topics) for g in new if not g.commits or _within(g, topics).commits}
    for group in old:
        kept = tuple(c for c in group.commits if c.topic not in topics)
        now = found.get(group.name)
        if now is not None:
            found[group.name] = msgspec.structs.replace(now, commits=_sorted((*kept, *now.commits)))
        elif kept:
            found[group.name] = msgspec.structs.replace(group, commits=_sorted(kept))
    return tuple(found[name] for name in sorted(found))


def _within(group: GroupRecord, topics: Collection[str]) -> GroupRecord:
    return msgspec.structs.replace(group, commits=_sorted(c for c in group.commits if c.topic in topics))


def _sorted(commits: Iterable[CommitRecord]) -> tuple[CommitRecord, ...]:
    """The last commit of each log, sorted by log."""
    found = {(c.topic, c.partition): c for c in commits}
    return tuple(found[log] for log in sorted(found))


def topic_rules(document: DatasetDocument | None) -> Mapping[str, TopicRecord]:
    """Topics as the last run recorded them."""
    return {t.name: t for t in document.topics} if document is not None else {}
