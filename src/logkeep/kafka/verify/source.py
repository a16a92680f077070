"""Verification at the level `source`: everything that the live cluster still has of a backup's cut must be archived.

First everything is decoded as at the level `records`. Then each log whose topic id and history are still those of the
backup is fetched from its leader, from the later of both starts up to the cut, and compared. A log with another topic
id or history cannot be compared: that is a warning, and the backup counts as verified at the level `records` only. The
same holds for a backup whose records differ from those of the source: its objects are whole, and the source may have
been rolled back. Finally `deleted_keys` reports which keys a restore would bring back although they were deleted.
"""

import secrets
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

import msgspec

from logkeep.formats.compare.digest import Digest
from logkeep.formats.compare.log_compare import warm
from logkeep.kafka.admin.offsets import LogBounds, log_bounds, offset_for_leader_epoch
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.fetch import DivergingEpoch
from logkeep.kafka.client.settings import ClientSettings
from logkeep.kafka.client.topology import ClusterMetadata, TopicPartition
from logkeep.kafka.deletions.returning_task import ReturningKey
from logkeep.kafka.logs.brokers import Brokers, SettingsBrokers
from logkeep.kafka.logs.live import cause_text
from logkeep.kafka.logs.lost_offset import Cause, LogFacts, LogPosition, explain
from logkeep.kafka.record.documents import KIND, PartitionRecord
from logkeep.kafka.record.folded_backups import known_folds
from logkeep.kafka.record.history_names import topic_id_of
from logkeep.kafka.record.stored_record import read_record
from logkeep.kafka.verify.compare_task import CompareResult, CompareUnit, LivePiece, compare_pieces
from logkeep.kafka.verify.deleted_keys import deleted_keys, logs_with_keys
from logkeep.kafka.verify.findings import NOT_COMPARED, not_compared
from logkeep.kafka.verify.folded_source import FoldedCompareUnit, compare_folded
from logkeep.kafka.verify.live_source import LiveSource, LiveState
from logkeep.kafka.verify.records import Decoded, SegmentRange, bounded_lists, decode_backup, log_digests
from logkeep.model.findings import Finding, Severity
from logkeep.model.plurals import plural
from logkeep.model.segments import LogName
from logkeep.repository.backups.burials import burials_by_log
from logkeep.repository.backups.folds import folds_by_log
from logkeep.repository.backups.manifest import KnownGap
from logkeep.repository.backups.source import check_source
from logkeep.repository.backups.verification import KEYS_RETURN, SOURCE_DIFFERS
from logkeep.repository.chain.commits import read_chain
from logkeep.repository.verify.run import BackupToCheck, DeeperCheck

_UNIT_PIECES = 500
UnitT = TypeVar("UnitT", CompareUnit, FoldedCompareUnit)
_SAMPLED = "it was folded, and only a part of its objects was read"


@dataclass
class SourceCheck:
    """The check against one cluster."""

    settings: ClientSettings
    show_keys: bool = False
    limit_download: int | None = None
    """Bytes per second from all brokers to all tasks together."""
    returning: tuple[ReturningKey, ...] = ()
    """After the check: deleted keys that a restore would bring back. They are printed, and never stored in clear."""

    def __call__(self, asked: BackupToCheck) -> DeeperCheck:
        proven, returning = _check(asked, self)
        self.returning = tuple(returning)
        return proven


def _check(asked: BackupToCheck, check: SourceCheck) -> tuple[DeeperCheck, list[ReturningKey]]:
    settings = check.settings
    with Cluster(settings) as cluster:
        metadata = cluster.metadata()
        check_source(asked.place, KIND, {"cluster_id": metadata.cluster_id})
        warm()
        decoded = decode_backup(asked)
        states, reasons = _comparable(asked, cluster)
    live = LiveSource(SettingsBrokers(settings), settings.client_id, check.limit_download)
    folded = _folded_units(asked, decoded, states, live)
    reasons |= dict.fromkeys(folded.sampled, _SAMPLED)
    for log, reason in sorted(reasons.items()):
        asked.checked.findings.append(not_compared(log, reason))
    keyed = logs_with_keys(asked, states)
    others = {log: state for log, state in states.items() if log not in folded.logs | keyed.keys()}
    results = _run(asked, decoded, others, live)
    if folded.units:
        results += asked.engine.map(
            compare_folded,
            _limited(folded.units, asked, live),
            CompareResult,
            label="compare with source",
            weight=lambda u: u.bytes,
        )
    returning, more = deleted_keys(asked, decoded, keyed, live, keyed.keys() - folded.logs, show=check.show_keys)
    results += more
    for result in results:
        asked.checked.findings.extend(result.findings)
    healable = [_healable(gap, states[gap.log]) for gap in asked.manifest.gaps if _may_exist(gap, states)]
    asked.checked.findings.extend(healable)
    _summarise(asked, decoded, states, results)
    short = {NOT_COMPARED, SOURCE_DIFFERS, KEYS_RETURN}
    whole = not healable and not any(f.code in short for f in asked.checked.findings)
    return DeeperCheck("source" if whole else "records", log_digests(asked.manifest, decoded)), returning


def _comparable(asked: BackupToCheck, cluster: Cluster) -> tuple[dict[LogName, LiveState], dict[LogName, str]]:
    """The logs that can be compared, and why the others cannot."""
    metadata = cluster.metadata()
    logs = {TopicPartition(c.log.name, c.log.partition): c for c in asked.manifest.cut}
    # A history is named by its topic id, with a number after a truncation.
    there = [
        tp for tp, c in logs.items() if metadata.find(tp) and _topic_id(metadata, tp).hex == topic_id_of(c.log.history)
    ]
    bounds = log_bounds(cluster, there)
    tips = {tp: r for tp, r in _tips(asked).items() if tp in bounds and r.last_epoch >= 0}
    answers = offset_for_leader_epoch(cluster, {tp: r.last_epoch for tp, r in tips.items()})
    known = {tp: DivergingEpoch(a.leader_epoch, a.end_offset) for tp, a in answers.items()}
    states, reasons = dict[LogName, LiveState](), dict[LogName, str]()
    for tp, cut in logs.items():
        cause = _cause(metadata, tp, cut.end, bounds.get(tp), tips.get(tp), known.get(tp))
        partition = metadata.find(tp)
        if cause.new_history or partition is None:
            reasons[cut.log] = cause_text(cause)
        else:
            states[cut.log] = LiveState(
                _topic_id(metadata, tp), partition.leader, bounds[tp].start, bounds[tp].high_watermark
            )
    return states, reasons


def _cause(
    metadata: ClusterMetadata,
    log: TopicPartition,
    end: int,
    bound: LogBounds | None,
    tip: PartitionRecord | None,
    known: DivergingEpoch | None,
) -> Cause:
    """Whether the log is still the one that was backed up; what retention removed does not matter."""
    if metadata.find(log) is None:
        return Cause.DELETED
    if bound is None:
        return Cause.RECREATED
    topic_id = _topic_id(metadata, log)
    facts = LogFacts(topic_id, bound.start, bound.high_watermark, known)
    position = LogPosition(topic_id, end, tip.last_epoch, tip.last_end) if tip else LogPosition(topic_id, end)
    return explain(position, facts).cause


def _topic_id(metadata: ClusterMetadata, log: TopicPartition) -> UUID:
    topic = metadata.topic(log.topic)
    return topic.id if topic else UUID(int=0)


def _tips(asked: BackupToCheck) -> dict[TopicPartition, PartitionRecord]:
    """What the backup recorded of the end of each log."""
    record = read_record(asked.place, asked.manifest)
    return {TopicPartition(r.topic, r.partition): r for r in record.logs} if record else {}


@dataclass(frozen=True)
class _FoldedLogs:
    """Folded logs are compared key by key, each as a whole."""

    logs: frozenset[LogName]
    units: tuple[FoldedCompareUnit, ...]
    sampled: tuple[LogName, ...]
    """The logs of which not every object was read."""


def _folded_units(
    asked: BackupToCheck, decoded: Decoded, states: Mapping[LogName, LiveState], live: LiveSource
) -> _FoldedLogs:
    chain = read_chain(asked.place)
    record = read_record(asked.place, asked.manifest)
    folds = folds_by_log(chain, states)
    folds = known_folds(folds, record, asked.manifest.id) if record is not None else folds
    folds = {log: fold for log, fold in folds.items() if log in states}
    burials = burials_by_log(chain, asked.manifest.id, folds)
    cuts = {cut.log: cut for cut in asked.manifest.cut}
    taken = {piece.name for piece in decoded.taken}
    pieces: defaultdict[LogName, list[SegmentRange]] = defaultdict(list)
    for piece in decoded.pieces:
        if piece.segment.log in folds:
            pieces[piece.segment.log].append(piece)
    whole = sorted(log for log in folds if all(p.name in taken for p in pieces[log]))
    units = [
        FoldedCompareUnit(
            place=asked.place,
            log=log,
            start=cuts[log].start,
            end=cuts[log].end,
            segments=tuple(p.segment for p in pieces[log]),
            buried=tuple(b.object for b in burials.get(log, ())),
            topic_id=states[log].topic_id,
            live_start=states[log].start,
            brokers=live.brokers,
            broker=states[log].broker,
            seeds=(secrets.randbits(63), secrets.randbits(63), secrets.randbits(63)),
        )
        for log in whole
    ]
    return _FoldedLogs(frozenset(folds), tuple(units), tuple(sorted(set(folds) - set(whole))))


def _run(
    asked: BackupToCheck, decoded: Decoded, states: Mapping[LogName, LiveState], live: LiveSource
) -> list[CompareResult]:
    units = _limited(list(_units(asked, decoded.taken, states, live.brokers)), asked, live)
    return asked.engine.map(compare_pieces, units, CompareResult, label="compare with source", weight=lambda u: u.bytes)


def _units(
    asked: BackupToCheck, pieces: list[SegmentRange], states: Mapping[LogName, LiveState], brokers: Brokers
) -> Iterator[CompareUnit]:
    """Segments that the source may still have, by leader, in units of bounded size."""
    by_broker: defaultdict[int, list[LivePiece]] = defaultdict(list)
    for piece in pieces:
        state = states.get(piece.segment.log)
        if state is not None and piece.end > state.start:
            by_broker[state.broker].append(LivePiece(piece, state.topic_id, state.start))
    for broker, wanted in sorted(by_broker.items()):
        for unit in bounded_lists(wanted, lambda each: each.piece.segment.stored_bytes, _UNIT_PIECES):
            yield CompareUnit(asked.place.store, brokers, broker, unit)


def _limited(units: Sequence[UnitT], asked: BackupToCheck, live: LiveSource) -> list[UnitT]:
    limits = live.limits(asked.engine, len(units))
    return [msgspec.structs.replace(unit, limits=limits) for unit in units]


def _may_exist(gap: KnownGap, states: Mapping[LogName, LiveState]) -> bool:
    state = states.get(gap.log)
    return state is not None and state.start < gap.end


def _healable(gap: KnownGap, state: LiveState) -> Finding:
    start = max(gap.start, state.start)
    return Finding(
        code="gap-healable",
        severity=Severity.WARNING,
        where=str(gap.log),
        what=f"the backup lacks offsets [{start}, {gap.end}), and the source may still have them ({gap.reason})",
        remedy="take a full backup under another source name while they are there",
    )


def _summarise(
    asked: BackupToCheck, decoded: Decoded, states: Mapping[LogName, LiveState], results: list[CompareResult]
) -> None:
    """How much was compared, as a note."""
    texts = (decoded.digests.get(p.name) for p in decoded.taken if p.segment.log in states)
    archived = sum(Digest.parse(text).records for text in texts if text)
    identical, equal = sum(r.identical for r in results), sum(r.equal for r in results)
    gone = f"{plural(max(archived - identical - equal, 0), 'archived one is', 'archived ones are')} gone there"
    gone += ", by retention or compaction"
    if any(f.code == NOT_COMPARED for r in results for f in r.findings):
        gone = "how many archived ones are gone there is not known, because not all could be compared"
    what = (
        f"{plural(len(states), 'log')} compared: "
        f"{plural(identical, 'record is', 'records are')} in the source in the very same batches,"
        f" {equal:,} more in batches that it rewrote; {gone}"
    )
    asked.checked.findings.append(
        Finding(code="source-compared", severity=Severity.NOTE, where=asked.place.source, what=what)
    )
