"""Comparisons of a run with the live cluster, and the commit that buries what vanished."""

import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from logkeep.formats.kafka.buried_offsets import BuriedOffsets, encode_runs
from logkeep.kafka.backup.assemble import Assembled
from logkeep.kafka.backup.deletion_passes import SUSPICIOUS
from logkeep.kafka.backup.facts import Facts
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.deletions.compare_task import DeletionsFound, DeletionUnit, compare_deletions
from logkeep.kafka.logs.brokers import Brokers
from logkeep.model.findings import Finding, Severity
from logkeep.model.ranges import Range
from logkeep.model.segments import LogName, Segment
from logkeep.model.work import Engine
from logkeep.repository.backups.burials import burials_by_log, put_burial
from logkeep.repository.backups.content import PartReader, rows_of, served_parts
from logkeep.repository.backups.source import read_manifest
from logkeep.repository.chain.actions import BuriedLog, BuryAction, HoldAction
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.fold import BackupEntry, Folded
from logkeep.repository.chain.format import BURIED_OFFSETS, require_feature
from logkeep.repository.chain.write_session import Writing

_PROOF = "the archive was compared with the live log: these keys have no record left there, and no archived tombstone"


@dataclass(frozen=True)
class ArchivedLogs:
    """The archive as a backup in progress sees it."""

    place: SourceRef
    folded: Folded
    backup: int
    base: BackupEntry | None
    assembled: Assembled

    def units(self, logs: Collection[LogName], facts: Facts, brokers: Brokers) -> list[DeletionUnit]:
        """One for each log that the cluster still has."""
        cuts = {c.log: c for c in self.assembled.cut if c.log in logs}
        segments = self._segments({log: Range(c.start, c.end) for log, c in cuts.items()})
        burials = burials_by_log(self.folded, self.backup, cuts)
        seeds = secrets.randbits(63), secrets.randbits(63)
        units = []
        for log, cut in sorted(cuts.items()):
            live = TopicPartition(log.name, log.partition)
            partition, topic = facts.metadata.find(live), facts.metadata.topic(log.name)
            if partition is not None and topic is not None and live in facts.bounds:
                units.append(
                    DeletionUnit(
                        place=self.place,
                        log=log,
                        topic_id=topic.id,
                        start=cut.start,
                        end=cut.end,
                        segments=segments[log],
                        buried=tuple(b.object for b in burials.get(log, ())),
                        brokers=brokers,
                        broker=partition.leader,
                        live_start=facts.bounds[live].start,
                        seeds=seeds,
                    )
                )
        return units

    def _segments(self, wanted: Mapping[LogName, Range]) -> dict[LogName, tuple[Segment, ...]]:
        """Rows of the base, up to its cut, and those of this run."""
        found: dict[LogName, list[Segment]] = {log: [] for log in wanted}
        for each in (*self._base_rows(wanted), *self.assembled.segments):
            if each.log in found:
                found[each.log].append(each)
        return {log: tuple(sorted(some, key=lambda s: s.start)) for log, some in found.items()}

    def _base_rows(self, wanted: Mapping[LogName, Range]) -> list[Segment]:
        if self.base is None:
            return []
        manifest = read_manifest(self.place, self.base)
        cuts = {c.log: c.end for c in manifest.cut}
        rows = rows_of(PartReader(self.place), manifest, served_parts(manifest, self.folded))
        ranges = {log: Range(span.start, cuts[log]) for log, span in wanted.items() if span.start < cuts.get(log, 0)}
        kept = rows.covering(ranges)
        return [msgspec.structs.replace(s, end=min(s.end, cuts[s.log])) for s in kept.to_segments()]


def compare_logs(units: Sequence[DeletionUnit], engine: Engine) -> list[DeletionsFound]:
    return engine.map(
        compare_deletions, units, DeletionsFound, label="compare deletions", weight=lambda unit: unit.size_bytes
    )


def buried_counts(folded: Folded, backup: int, logs: Iterable[LogName]) -> dict[LogName, int]:
    """How many offsets of each log are buried in a backup."""
    there = burials_by_log(folded, backup, logs)
    return {log: sum(b.offsets for b in some) for log, some in there.items()}


def bury(session: Writing, backup: int, buried: Mapping[LogName, BuriedOffsets]) -> None:
    """Commit what this backup and later ones leave out; before the backup, which is never visible without it."""
    if not buried:
        return
    require_feature(session.place.store, BURIED_OFFSETS)
    logs = [
        BuriedLog(log, put_burial(session.place, encode_runs(offsets), session.tokens()), offsets.count)
        for log, offsets in sorted(buried.items())
    ]
    session.commit(BuryAction(backup, tuple(logs), _PROOF))


def hold_before(session: Writing, base: BackupEntry | None) -> None:
    """Hold the last backup before suspicious deletions, unless one is held for this reason already."""
    entry = session.folded.entry(base.id) if base is not None else None
    if entry is not None and entry.hold is None and not any(e.hold == SUSPICIOUS for e in session.folded.completed):
        session.commit(HoldAction(entry.id, SUSPICIOUS))


def release_notes(folded: Folded) -> tuple[Finding, ...]:
    """Notes about backups that are held because of deletions, after the user has accepted these: only the user ends a
    hold."""
    return tuple(
        Finding(
            code="deletions-accepted",
            severity=Severity.NOTE,
            where=f"backup {entry.id}",
            what=f"it is held because of deletions that are accepted now; `logkeep release {entry.id}` ends that",
        )
        for entry in folded.completed
        if entry.hold == SUSPICIOUS
    )
