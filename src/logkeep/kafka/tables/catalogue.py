"""Tables about a backup itself: its topics, partitions, groups and segments. Columns are only ever added."""

from collections.abc import Callable, Iterable

import pyarrow as pa

from logkeep.kafka.client.topology import is_internal
from logkeep.kafka.record.backup_view import KafkaBackupView
from logkeep.repository.parts import log_totals

_TIME = pa.timestamp("us", "UTC")
_TOPICS = pa.schema(
    {
        "topic": pa.string(),
        "topic_id": pa.string(),
        "internal": pa.bool_(),
        "partitions": pa.int32(),
        "replication_factor": pa.int32(),
        "configs": pa.map_(pa.string(), pa.string()),
    }
)
_PARTITIONS = pa.schema(
    {
        "topic": pa.string(),
        "partition": pa.int32(),
        "history": pa.string(),
        "start_offset": pa.int64(),
        "end_offset": pa.int64(),
        "last_stable_offset": pa.int64(),
        "segments": pa.int64(),
        "records": pa.int64(),
        "stored_bytes": pa.int64(),
        "plain_bytes": pa.int64(),
        "missing_offsets": pa.int64(),
    }
)
_GROUPS = pa.schema(
    {
        "group": pa.string(),
        "kind": pa.string(),
        "state": pa.string(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "committed_offset": pa.int64(),
        "metadata": pa.string(),
        "lag": pa.int64(),
    }
)
_SEGMENTS = pa.schema(
    {
        "topic": pa.string(),
        "partition": pa.int32(),
        "history": pa.string(),
        "start_offset": pa.int64(),
        "end_offset": pa.int64(),
        "records": pa.int64(),
        "stored_bytes": pa.int64(),
        "plain_bytes": pa.int64(),
        "codec": pa.string(),
        "proof": pa.string(),
        "oldest": _TIME,
        "newest": _TIME,
        "object": pa.string(),
    }
)


def topics(view: KafkaBackupView) -> pa.Table:
    rows = (
        (t.name, t.id, is_internal(t.name, t.internal), t.partitions, t.replication_factor, list(t.configs.items()))
        for t in view.record.topics
    )
    return _table(_TOPICS, rows)


def partitions(view: KafkaBackupView) -> pa.Table:
    """One row for each archived log. Records and bytes are those of its segments, which may reach beyond its cut."""
    totals = log_totals(view.rows)
    stable = {(r.topic, r.partition): r.last_stable for r in view.record.logs}
    missing: dict[object, int] = {}
    for gap in view.manifest.gaps:
        missing[gap.log] = missing.get(gap.log, 0) + gap.end - gap.start
    rows = []
    for cut in view.manifest.cut:
        log, found = cut.log, totals.get(cut.log)
        counted = (found.segments, found.records, found.stored_bytes, found.plain_bytes) if found else (0, 0, 0, 0)
        last_stable = stable.get((log.name, log.partition), cut.end)
        place = (log.name, log.partition, log.history, cut.start, cut.end, last_stable)
        rows.append((*place, *counted, missing.get(log, 0)))
    return _table(_PARTITIONS, rows)


def groups(view: KafkaBackupView) -> pa.Table:
    """One row for each offset that a group has committed. `offset` is not above the cut; the lag is up to the cut."""
    ends = {(r.topic, r.partition): r.end for r in view.record.logs}
    rows = []
    for group in view.record.groups:
        for c in group.commits:
            end = ends.get((c.topic, c.partition))
            lag = None if end is None else end - c.offset
            position = (c.topic, c.partition, c.offset, c.committed, c.metadata, lag)
            rows.append((group.name, group.kind, group.state, *position))
    return _table(_GROUPS, rows)


def segments(view: KafkaBackupView) -> pa.Table:
    stored = view.rows.with_objects()
    rows = []
    for s, name in zip(stored.to_segments(), stored.object_names(view.place.source), strict=True):
        times = [None if ms < 0 else ms * 1000 for ms in (s.base_time_ms, s.max_time_ms)]
        place = (s.log.name, s.log.partition, s.log.history, s.start, s.end)
        size = (s.records, s.stored_bytes, s.plain_bytes, str(s.codec), str(s.proof))
        rows.append((*place, *size, *times, name))
    return _table(_SEGMENTS, rows)


CATALOGUE: dict[str, Callable[[KafkaBackupView], pa.Table]] = {
    "logkeep_topics": topics,
    "logkeep_partitions": partitions,
    "logkeep_groups": groups,
    "logkeep_segments": segments,
}


def _table(schema: pa.Schema, rows: Iterable[tuple[object, ...]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema)
