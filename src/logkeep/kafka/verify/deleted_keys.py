"""Whether a restore of a backup would bring back keys that were deleted before its cut, at the level `source`.

A key whose archived records are gone from the live log, and which has no later record there, was deleted. If the
backup did not prove that it read every deletion, or if a deletion after the cut would have left its tombstone, then it
was deleted before the cut, and the backup is wrong about it. Otherwise it was deleted since: the backup is right.
"""

import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.deletions.compare_task import DeletionUnit
from logkeep.kafka.deletions.returning_task import KeysFound, ReturningKey, ReturningUnit, find_returning
from logkeep.kafka.record.deletion_times import DeletionTimes, compacted_topics_of, margin_ms
from logkeep.kafka.record.documents import PartitionRecord
from logkeep.kafka.record.stored_record import read_record
from logkeep.kafka.record.unproven_deletions import unproven_by_rows
from logkeep.kafka.verify.compare_task import CompareResult, compared_pieces
from logkeep.kafka.verify.findings import not_compared
from logkeep.kafka.verify.live_source import LiveSource, LiveState
from logkeep.kafka.verify.records import Decoded, SegmentRange
from logkeep.model.clock_time import same_clock
from logkeep.model.findings import Finding, Severity, worst
from logkeep.model.plurals import plural
from logkeep.model.ranges import Range
from logkeep.model.segments import LogName
from logkeep.repository.backups.folds import with_dense
from logkeep.repository.backups.verification import KEYS_RETURN
from logkeep.repository.chain.commits import read_chain
from logkeep.repository.parts import dense_logs
from logkeep.repository.verify.checks import EVERYTHING
from logkeep.repository.verify.run import BackupToCheck

_NAMED_KEYS = 5
"""How many keys the text of a finding names; the report lists more."""


def logs_with_keys(asked: BackupToCheck, states: Mapping[LogName, LiveState]) -> dict[LogName, LiveState]:
    """The logs of compacted topics; none in a sample, or if the archive is damaged."""
    record = read_record(asked.place, asked.manifest)
    if record is None or worst(asked.checked.findings) is Severity.DAMAGE:
        return {}
    compacted = compacted_topics_of(record)
    logs = {log: state for log, state in states.items() if log.name in compacted}
    if logs and asked.sample != EVERYTHING:
        asked.checked.findings.append(_sampled(asked.place.source))
        return {}
    return logs


def deleted_keys(
    asked: BackupToCheck,
    decoded: Decoded,
    logs: Mapping[LogName, LiveState],
    live: LiveSource,
    beside: Collection[LogName],
    *,
    show: bool,
) -> tuple[list[ReturningKey], list[CompareResult]]:
    """Compare these logs, and report which keys would come back: they are in the result only. The live records of those
    in `beside` are compared with the archived ones too, so that both are read once."""
    record = read_record(asked.place, asked.manifest)
    if record is None or not logs:
        return [], []
    archived: dict[LogName, list[SegmentRange]] = {}
    for piece in decoded.pieces:
        archived.setdefault(piece.segment.log, []).append(piece)
    units = _units(asked, archived, logs, live, beside, show=show)
    found = asked.engine.map(
        find_returning, units, KeysFound, label="compare deletions", weight=lambda unit: unit.size_bytes
    )
    folded = read_chain(asked.place)
    unproven = unproven_by_rows(
        record, asked.manifest, lambda: with_dense(folded, asked.manifest.id, dense_logs(asked.rows))
    )
    recorded = {TopicPartition(r.topic, r.partition): r for r in record.logs}
    returning = list[ReturningKey]()
    for each in found:
        log = TopicPartition(each.log.name, each.log.partition)
        before = log in unproven or deleted_before_cut(each, recorded.get(log))
        asked.checked.findings += findings_of(each, before_cut=before)
        returning += each.listed if before else ()
    compared = [compared_pieces(archived[each.log], each.compared) for each in found if each.compared]
    return returning, compared


def deleted_before_cut(found: KeysFound, log: PartitionRecord | None) -> bool:
    """Whether the keys that are gone were deleted before the cut of the backup, or may have been. Pure."""
    times = log.deletions if log is not None else None
    if times is None:
        return found.later_dense
    return times.unproven is not None or found.later_dense or _tombstones_last(times, found)


def _tombstones_last(times: DeletionTimes, found: KeysFound) -> bool:
    """Whether a tombstone that was written after the cut would still be there."""
    if not same_clock(times, found.read):
        return False
    return 0 <= found.read.ms - times.cut_ms < times.retention_ms - margin_ms(times.retention_ms)


def findings_of(found: KeysFound, *, before_cut: bool) -> list[Finding]:
    """The findings about one compared log. Pure."""
    where = str(found.log)
    if problem := found.problem or found.later_problem:
        compared = "live log" if found.problem and found.compared else "keys that are live"
        return [not_compared(found.log, problem, compared)]
    if not found.records:
        return []
    gone = f"{plural(found.keys, 'key')} ({plural(found.records, 'archived record')}), gone from the live log"
    if not before_cut:
        what = f"a restore brings back {gone} since this backup: {_first_keys(found.listed)}"
        return [Finding(code="deleted-since", severity=Severity.NOTE, where=where, what=what)]
    return [
        Finding(
            code=KEYS_RETURN,
            severity=Severity.WARNING,
            where=where,
            what=f"a restore would bring back {gone} without an archived tombstone: {_first_keys(found.listed)}",
            remedy="run `logkeep kafka backup`, which compares the log and leaves them out, and restore that backup",
        )
    ]


def _first_keys(listed: Iterable[ReturningKey]) -> str:
    some = list(listed)
    named = [f"offset {key.offsets[0]}, key with SHA-256 {key.key_sha256}" for key in some[:_NAMED_KEYS]]
    return "; ".join([*named, *(["and others"] if len(some) > _NAMED_KEYS else [])])


def _sampled(source: str) -> Finding:
    what = "keys that a restore would bring back are not looked for in a sample"
    return Finding(code="deletions-not-compared", severity=Severity.NOTE, where=source, what=what)


def _units(
    asked: BackupToCheck,
    archived: Mapping[LogName, Sequence[SegmentRange]],
    logs: Mapping[LogName, LiveState],
    live: LiveSource,
    beside: Collection[LogName],
    *,
    show: bool,
) -> list[ReturningUnit]:
    """Offsets below the start of the live log are left out: retention removed them since."""
    seeds = secrets.randbits(63), secrets.randbits(63)
    units = []
    for cut in asked.manifest.cut:
        state, some = logs.get(cut.log), archived.get(cut.log, ())
        if state is None or not some or cut.end <= state.start:
            continue
        compared = DeletionUnit(
            place=asked.place,
            log=cut.log,
            topic_id=state.topic_id,
            start=max(cut.start, state.start),
            end=cut.end,
            segments=tuple(piece.segment for piece in some),
            buried=some[0].buried,
            brokers=live.brokers,
            broker=state.broker,
            live_start=state.start,
            seeds=seeds,
        )
        spans = tuple(Range(piece.start, piece.end) for piece in some) if cut.log in beside else ()
        units.append(ReturningUnit(compared, max(state.end, cut.end), show, spans))
    limits = live.limits(asked.engine, len(units))
    return [replace(unit, compared=replace(unit.compared, limits=limits)) for unit in units]
