"""The verification of an application's backup at the level `cut`: tasks over its logs, then the rules.

Snapshots are surveyed first, because receivers forget messages below a low-water mark: from where on the messages of
two partitions can be compared is in the receiver's snapshot. A second pass reads only the logs of pairs whose sums
differ, to name the messages.
"""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from logkeep.checkpoint.archive.log_names import log_of, snapshots_of
from logkeep.checkpoint.archive.record import ApplicationRecord, read_application
from logkeep.checkpoint.certificate.log_task import PartitionUnit, SystemKeysUnit, check_partition, survey_snapshot
from logkeep.checkpoint.certificate.rules import ArchivedCut, CutEvidence, certify, unequal_names, unequal_pairs
from logkeep.checkpoint.certificate.set_members import CutsOf, SetMember, read_members
from logkeep.checkpoint.certificate.state_fold import MODULUS
from logkeep.checkpoint.certificate.tables import CutTables, Pair, PartitionClaim, PartitionFacts, SystemKeys
from logkeep.model.findings import Finding, Severity
from logkeep.model.segments import LogName, Segment
from logkeep.repository.backups.certificate import CapturedMember, Certificate
from logkeep.repository.backups.manifest import Manifest
from logkeep.repository.chain import layout
from logkeep.repository.verify.run import BackupToCheck, DeeperCheck

LEVEL = "cut"
RULE_BROKEN, RULE_UNCHECKED = "cut-broken", "cut-unchecked"
_SLICE_BYTES = 256 << 20
"""Of a snapshot: the keys of larger ones are folded in several slices, each by a task of its own."""


@dataclass
class CutCheck:
    """A deeper check that keeps its certificate for the report."""

    cuts_of: CutsOf = lambda *_: {}
    """For external positions: where the backups of other members end."""
    certificate: Certificate | None = None
    _segments: Mapping[LogName, list[Segment]] = field(default_factory=dict)

    def __call__(self, asked: BackupToCheck) -> DeeperCheck:
        record = read_application(asked.place, asked.manifest)
        self._segments = _by_log(asked)
        found = self._evidence(asked, record)
        unequal = {} if found.damaged else self._unequal_messages(asked, found)
        self.certificate = certify(found, unequal)
        _report(asked, record, found, self.certificate)
        asked.checked.read_objects = sum(len(rows) for rows in self._segments.values())
        return DeeperCheck(LEVEL, certificate=self.certificate)

    def _evidence(self, asked: BackupToCheck, record: ApplicationRecord) -> CutEvidence:
        snapshots = self._survey(asked, record)
        tables = _tables(record, snapshots)
        units = [unit for n in range(record.partitions) for unit in self._units(asked, record, tables, snapshots, n)]
        logs = joined(
            asked.engine.map(check_partition, units, PartitionFacts, label="verify cut", weight=lambda u: u.bytes)
        )
        reported = {name for log in logs for name in log.external}
        members = read_members(asked.place, asked.manifest, reported, self.cuts_of)
        archived = archived_cuts(record, asked.manifest)
        return CutEvidence(tables, archived, snapshots, logs, members, captured(asked.manifest, members))

    def _survey(self, asked: BackupToCheck, record: ApplicationRecord) -> dict[int, SystemKeys]:
        units = [
            SystemKeysUnit(asked.place, number, row)
            for number in range(record.partitions)
            if (row := self._snapshot(record, number)) is not None
        ]
        found = asked.engine.map(survey_snapshot, units, SystemKeys, label="read snapshots", weight=lambda u: u.bytes)
        return {each.partition: each for each in found}

    def _snapshot(self, record: ApplicationRecord, number: int) -> Segment | None:
        branch = record.copies[number].branch
        rows = self._segments.get(snapshots_of(record.name, record.history, number, branch), [])
        return rows[0] if rows else None

    def _units(
        self,
        asked: BackupToCheck,
        record: ApplicationRecord,
        tables: CutTables,
        snapshots: Mapping[int, SystemKeys],
        number: int,
    ) -> list[PartitionUnit]:
        log = log_of(record.name, record.history, number, record.copies[number].branch)
        rows = tuple(self._segments.get(log, ()))
        snapshot = self._snapshot(record, number)
        parts = 1 + (snapshot.plain_bytes // _SLICE_BYTES if snapshot else 0)
        base = snapshots.get(number, SystemKeys(number))
        return [
            PartitionUnit(asked.place, number, rows, snapshot, tables, base, (part, parts)) for part in range(parts)
        ]

    def _unequal_messages(self, asked: BackupToCheck, found: CutEvidence) -> dict[Pair, list[str]]:
        """A second pass over the logs of pairs that are unequal."""
        pairs = unequal_pairs(found)
        wanted = sorted({number for pair in pairs for number in pair})
        if not wanted:
            return {}
        record = read_application(asked.place, asked.manifest)
        units = [
            msgspec.structs.replace(
                self._units(asked, record, found.tables, found.snapshots, number)[0], with_ids=True, snapshot=None
            )
            for number in wanted
        ]
        logs = {
            log.partition: log
            for log in asked.engine.map(
                check_partition, units, PartitionFacts, label="name messages", weight=lambda u: u.bytes
            )
        }
        return {pair: names_of(pair, found, logs) for pair in pairs}


def names_of(pair: Pair, found: CutEvidence, logs: Mapping[int, PartitionFacts]) -> list[str]:
    sender, receiver = pair
    sent = np.frombuffer(logs[sender].ids.get(f"sent/{receiver}", b""), np.int64).tolist()
    received = np.frombuffer(logs[receiver].ids.get(f"received/{sender}", b""), np.int64).tolist()
    return unequal_names(pair, sent, received, found.in_transit.get(pair, ()))


def joined(found: Iterable[PartitionFacts]) -> list[PartitionFacts]:
    """One for each partition: slices of its keys add to the first."""
    logs: dict[int, PartitionFacts] = {}
    for log in found:
        first = logs.setdefault(log.partition, log)
        if first is not log:
            total = int(first.state_digest or "0", 16) + int(log.state_digest or "0", 16)
            first.state_digest = f"{total % MODULUS:064x}"
            first.keys, first.keys_from_log = first.keys + log.keys, first.keys_from_log + log.keys_from_log
            own = log.violations
            if "V10" in own.counts:
                first.violations.add("V10", *own.records["V10"], count=own.counts["V10"])
            first.snapshot_problem = first.snapshot_problem or log.snapshot_problem
            first.damaged = first.damaged or log.damaged
    return [logs[number] for number in sorted(logs)]


def _by_log(asked: BackupToCheck) -> dict[LogName, list[Segment]]:
    cuts = {cut.log: cut for cut in asked.manifest.cut}
    found: dict[LogName, list[Segment]] = {}
    for row in asked.rows.to_segments():
        cut = cuts.get(row.log)
        if cut is not None and row.start < cut.end and row.end > cut.start:
            found.setdefault(row.log, []).append(row)
    return {log: sorted(rows, key=lambda row: row.start) for log, rows in found.items()}


def captured(manifest: Manifest, members: Sequence[SetMember]) -> list[CapturedMember]:
    """In the order in which the backups began; those without one come last."""
    if not members:
        return []
    found = [(manifest.source, manifest.kind, manifest.started), *((m.source, m.kind, m.started) for m in members)]
    in_order = sorted(found, key=lambda each: (each[2] is None, each[2] or ""))
    return [CapturedMember(source=source, kind=kind, started=started) for source, kind, started in in_order]


def archived_cuts(record: ApplicationRecord, manifest: Manifest) -> list[ArchivedCut]:
    cuts = {cut.log: cut for cut in manifest.cut}
    found = []
    for copy in record.copies:
        log = cuts.get(log_of(record.name, record.history, copy.partition, copy.branch))
        snapshot = cuts.get(snapshots_of(record.name, record.history, copy.partition, copy.branch))
        start, end = (log.start, log.end) if log else (-1, -1)
        found.append(ArchivedCut(start, end, snapshot.end - 1 if snapshot else -1))
    return found


def _tables(record: ApplicationRecord, snapshots: Mapping[int, SystemKeys]) -> CutTables:
    lows = {(sender, receiver): low for receiver, found in snapshots.items() for sender, low in found.lows.items()}
    return CutTables(
        application=record.application,
        name=record.name,
        history=record.history,
        checkpoint=record.id,
        nonce=record.nonce,
        claims=tuple(
            PartitionClaim(
                copy.partition,
                copy.log_start,
                copy.cut_end,
                copy.position,
                copy.snapshot_position,
                copy.state_digest,
                copy.external,
                tuple((found, position) for found, position, _ in copy.checkpoints),
            )
            for copy in record.copies
        ),
        from_positions=lows,
        seed=secrets.randbits(63),
    )


def _report(asked: BackupToCheck, record: ApplicationRecord, found: CutEvidence, certificate: Certificate) -> None:
    """Broken rules are damage of the backup; an object that cannot be read is damage of that object."""
    for log in found.damaged:
        assert log.damaged is not None  # noqa: S101 - that is what it was chosen by
        asked.checked.damage("object-unreadable", log.damaged[0], log.damaged[1])
    report_rules(asked, log_of(record.name, record.history, 0, record.copies[0].branch), certificate)


def report_rules(asked: BackupToCheck, log: LogName, certificate: Certificate) -> None:
    """Findings about the rules of a certificate, at one of the logs that it is about."""
    where = layout.log_root(asked.place.source, log)
    for rule in certificate.broken:
        named = "; ".join(rule.records[:3])
        what = f"{rule.rule}, {rule.title}: {rule.what}" + (f": {named}" if named else "")
        asked.checked.damage(RULE_BROKEN, where, what, "restore another backup; this one is not consistent")
    for rule in certificate.unchecked:
        what = f"{rule.rule}, {rule.title}, is not checkable: {rule.what}"
        asked.checked.findings.append(Finding(code=RULE_UNCHECKED, severity=Severity.NOTE, where=where, what=what))
