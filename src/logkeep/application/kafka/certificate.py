"""The certificate of participants: V1 to V13 for an application that consumes, processes and produces on Kafka.

Everything is computed from archived records; the positions P, B and E of the backup (see `in_transit`) are compared
with them. Without transactions, records whose cause is after the cut are duplicates in effect: they are counted, and
the cut is not called exact.

First the whole backup is decoded as at the level `records`, what is after E included: a deeper level proves no less.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from logkeep.application.kafka.cut_document import ApplicationLog, ParticipantCut, read_cut
from logkeep.application.kafka.cut_task import CheckedLog, LogClaim, LogUnit, ParticipantTables, check_log
from logkeep.checkpoint.certificate.run import LEVEL, report_rules
from logkeep.checkpoint.certificate.tables import Violations
from logkeep.errors import Damaged
from logkeep.kafka.record.stored_record import read_record
from logkeep.kafka.verify.records import decode_backup, log_digests
from logkeep.model.findings import Severity
from logkeep.model.plurals import plural
from logkeep.model.segments import LogName, Segment
from logkeep.repository.backups.certificate import MOST_NAMED, Certificate, Outcome, RuleOutcome
from logkeep.repository.backups.manifest import KnownGap
from logkeep.repository.verify.run import BackupToCheck, DeeperCheck

TITLES = {
    "V1": "each task has one checkpoint of this id",
    "V2": "no record of the cut carries the id of the cut or a later one",
    "V3": "stamps agree with causes",
    "V4": "what is kept was made of records inside the cut",
    "V5": "messages in transit are those that a restore appends",
    "V6": "every transaction is decided",
    "V7": "groups are where their tasks were",
    "V8": "logs are complete and readable",
    "V9": "logs continue their snapshots",
    "V10": "the state is what the archived events give",
    "V11": "every message is received or pending, once",
    "V12": "positions agree with the archive",
    "V13": "external positions are covered",
}
CLIENTS = "clients that read one topic and write to another are not observed"
_NOT_OURS = {
    "V9": "participants keep their state in topics, which have no snapshots",
    "V10": "participants keep their state in topics: its fold is their own",
    "V11": "participants have no outbox: V4 and V5 have what was sent",
    "V13": "participants report no external positions",
}
_DUPLICATES = ("V3", "V4")
"""Without transactions these count duplicates: a task that ended without a commit produced, and its successor again."""

GroupPositions = Mapping[tuple[str, str, int], int]
"""By group, topic and partition."""


@dataclass(frozen=True)
class ParticipantEvidence:
    """Everything that tasks returned, and what the backup says elsewhere."""

    cut: ParticipantCut
    logs: Sequence[CheckedLog]
    archived: Mapping[tuple[str, int], tuple[int, int]]
    """Start and end of each archived log."""
    groups: GroupPositions
    gaps: Sequence[KnownGap] = ()
    """Of the application's logs, before E."""

    @property
    def damaged(self) -> list[tuple[str, str]]:
        return [log.damaged for log in self.logs if log.damaged]


@dataclass
class ParticipantCutCheck:
    """A deeper check of a backup that `read_cut` finds a cut in."""

    certificate: Certificate | None = None

    def __call__(self, asked: BackupToCheck) -> DeeperCheck:
        cut = read_cut(asked.place, asked.manifest)
        if cut is None:
            raise Damaged("the cut of the application is missing", subject=f"backup {asked.manifest.id}")
        decoded = decode_backup(asked)
        found = self._evidence(asked, cut)
        self.certificate = certify(found)
        _report(asked, found, self.certificate)
        return DeeperCheck(LEVEL, log_digests(asked.manifest, decoded), self.certificate)

    def _evidence(self, asked: BackupToCheck, cut: ParticipantCut) -> ParticipantEvidence:
        archived = {(each.log.name, each.log.partition): each for each in asked.manifest.cut}
        bounds = {log: (each.start, each.end) for log, each in archived.items()}
        tables, places = tables_of(cut, bounds), {(log.topic, log.partition): n for n, log in enumerate(cut.logs)}
        names = {each.log: places[log] for log, each in archived.items() if log in places}
        segments: dict[LogName, list[Segment]] = {}
        for row in asked.rows.to_segments():
            if row.log in names and row.start < bounds[row.log.name, row.log.partition][1]:
                segments.setdefault(row.log, []).append(row)
        units = [
            LogUnit(asked.place, number, tuple(sorted(segments.get(log, ()), key=lambda row: row.start)), tables)
            for log, number in names.items()
        ]
        facts = list(asked.engine.map(check_log, units, CheckedLog, label="verify cut", weight=lambda unit: unit.bytes))
        record = read_record(asked.place, asked.manifest)
        groups = {
            (group.name, commit.topic, commit.partition): commit.offset
            for group in (record.groups if record is not None else ())
            for commit in group.commits
        }
        gaps = [gap for gap in asked.manifest.gaps if gap.log in names and gap.start < cut.logs[names[gap.log]].end]
        return ParticipantEvidence(cut, sorted(facts, key=lambda log: log.number), bounds, groups, gaps)


def tables_of(cut: ParticipantCut, archived: Mapping[tuple[str, int], tuple[int, int]]) -> ParticipantTables:
    return ParticipantTables(
        stamp=cut.stamp,
        history=cut.history,
        checkpoint=cut.id,
        claims=tuple(
            LogClaim(
                topic=log.topic,
                partition=log.partition,
                start=archived.get((log.topic, log.partition), (0, 0))[0],
                kept_to=log.kept_to,
                end=log.end,
                low=min((reader.offset for reader in log.readers), default=-1),
                high=max((reader.offset for reader in log.readers), default=-1),
            )
            for log in cut.logs
        ),
    )


def certify(found: ParticipantEvidence) -> Certificate:
    cut, violations = found.cut, Violations()
    for log in found.logs:
        violations.join(log.violations)
    others = sum(log.others for log in found.logs)
    declared = [CLIENTS]
    if others:
        declared.append(f"{plural(others, 'record')} with the stamp of another application: they force nothing")
    unstamped = sum(log.records - log.own - log.others for log in found.logs)
    if unstamped:
        what = "of clients and of applications that do not take part: inside the cut if they were written before B"
        declared.append(f"{plural(unstamped, 'record')} without a stamp, {what}")
    replaced = sum(log.replaced for log in found.logs)
    if replaced:
        what = "a log that no longer exists: its topic was created again since, or restored with other offsets"
        declared.append(f"{plural(replaced, 'record')} made of {what}")
    return Certificate(
        application=cut.stamp,
        history=cut.history,
        checkpoint=cut.id,
        rules=tuple(_outcome(found, violations, rule) for rule in TITLES),
        records=sum(log.records for log in found.logs),
        in_transit=sum(len(log.in_transit) for log in cut.logs),
        declared=tuple(declared),
        exact=cut.transactional,
        duplicates=0 if cut.transactional else max(violations.counts.get(rule, 0) for rule in _DUPLICATES),
    )


def _outcome(found: ParticipantEvidence, violations: Violations, rule: str) -> RuleOutcome:
    if rule in _NOT_OURS:
        return _rule(rule, "unchecked", _NOT_OURS[rule])
    if found.damaged:
        names = [f"{where}: {what}" for where, what in found.damaged]
        if rule == "V8":
            return _rule(rule, "broken", "objects cannot be read", names)
        return _rule(rule, "unchecked", f"{plural(len(names), 'log')} cannot be read to the end")
    records, what = _CHECKS[rule](found)
    named, count = [*violations.records.get(rule, ()), *records], violations.counts.get(rule, 0) + len(records)
    if not count:
        return _without_gaps(found, what) if rule == "V8" else _rule(rule, "held", what)
    if rule in _DUPLICATES and not found.cut.transactional:
        why = f"{plural(count, 'record')} of tasks that ended without a commit may be there twice, or come again"
        return _rule(rule, "unchecked", f"without transactions, {why}", named, count)
    return _rule(rule, "broken", plural(count, "violation"), named, count)


def _without_gaps(found: ParticipantEvidence, what: str) -> RuleOutcome:
    """What the source had lost before it was archived may have been in transit."""
    gaps = [f"{gap.log}: {gap.start} to {gap.end}, {gap.reason}" for gap in found.gaps]
    if gaps:
        return _rule("V8", "unchecked", f"the source no longer had {plural(len(gaps), 'range')} of offsets", gaps)
    return _rule("V8", "held", what)


def _rule(rule: str, outcome: Outcome, what: str, records: Sequence[str] = (), count: int = 0) -> RuleOutcome:
    named = tuple(records[:MOST_NAMED])
    return RuleOutcome(
        rule=rule, title=TITLES[rule], outcome=outcome, what=what, records=named, count=count or len(records)
    )


Checked = tuple[list[str], str]
"""What breaks the rule, and what was compared."""


def _tasks(found: ParticipantEvidence) -> Checked:
    """A group that reads a topic reads all of its partitions, each once."""
    readers = {(log.topic, r.group) for log in found.cut.logs for r in log.readers}
    wrong = []
    for log in found.cut.logs:
        groups = [reader.group for reader in log.readers]
        for group in sorted({group for topic, group in readers if topic == log.topic}):
            if groups.count(group) != 1:
                wrong.append(f"{_name(log)}: group {group} has {plural(groups.count(group), 'checkpoint')}")
    return wrong, plural(sum(len(log.readers) for log in found.cut.logs), "position")


def _stamps(found: ParticipantEvidence) -> Checked:
    return [], f"{plural(sum(log.own for log in found.logs), 'record')} that the application produced"


def _transit(found: ParticipantEvidence) -> Checked:
    wrong = []
    for log in found.logs:
        said, there = found.cut.logs[log.number], set(log.in_transit)
        named = set(said.in_transit)
        wrong += [f"{_name(said)}: the record at {at} is in transit, and not listed" for at in sorted(there - named)]
        wrong += [f"{_name(said)}: the record at {at} is listed, and not in transit" for at in sorted(named - there)]
    return wrong, plural(sum(len(log.in_transit) for log in found.logs), "message")


def _decided(found: ParticipantEvidence) -> Checked:
    wrong = [
        f"{_name(found.cut.logs[log.number])}: the transaction that begins at {first} has no end"
        for log in found.logs
        for first in log.open_transactions
    ]
    return wrong, f"transactions of {plural(len(found.logs), 'log')}"


def _groups(found: ParticipantEvidence) -> Checked:
    wrong, count = [], 0
    for log in found.cut.logs:
        for reader in log.readers:
            there = found.groups.get((reader.group, log.topic, log.partition))
            count += 1
            if there != reader.offset:
                wrong.append(f"{_name(log)}: group {reader.group} is at {there}, its task was at {reader.offset}")
    return wrong, plural(count, "position")


def _complete(found: ParticipantEvidence) -> Checked:
    there = {log.number for log in found.logs}
    wrong = [f"{_name(log)} is not archived" for number, log in enumerate(found.cut.logs) if number not in there]
    return wrong, f"{plural(sum(log.records for log in found.logs), 'record')} with their hashes"


def _positions(found: ParticipantEvidence) -> Checked:
    wrong = []
    for log in found.cut.logs:
        start, end = found.archived.get((log.topic, log.partition), (0, 0))
        if not max(log.before, log.kept_to) <= log.end <= end:
            wrong.append(f"{_name(log)}: B {log.before}, P and B {log.kept_to}, E {log.end}, archived to {end}")
        outside = [at for at in log.in_transit if not max(log.kept_to, start) <= at < log.end]
        wrong += [f"{_name(log)}: {at} is listed as in transit, and is not before E" for at in outside]
    return wrong, f"P, B and E of {plural(len(found.cut.logs), 'log')}"


_CHECKS = {
    "V1": _tasks,
    "V2": _stamps,
    "V3": _stamps,
    "V4": _stamps,
    "V5": _transit,
    "V6": _decided,
    "V7": _groups,
    "V8": _complete,
    "V12": _positions,
}


def _name(log: ApplicationLog) -> str:
    return f"{log.topic}/{log.partition}"


def _report(asked: BackupToCheck, found: ParticipantEvidence, certificate: Certificate) -> None:
    """Broken rules are damage of the backup; an object that cannot be read is damage of that object."""
    known = {each.where for each in asked.checked.findings if each.severity is Severity.DAMAGE}
    for where, what in found.damaged:
        if where not in known:
            asked.checked.damage("object-unreadable", where, what)
    report_rules(asked, asked.manifest.cut[0].log, certificate)
