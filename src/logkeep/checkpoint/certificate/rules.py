"""V1 to V13 for an application: what the tables of all partitions say together. Pure.

Rules that single records break were checked by the tasks; here they get their outcome, and what needs several
partitions is compared: checkpoints, messages on their way, digests, positions.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from logkeep.checkpoint.certificate.message_fold import added, hash_sums
from logkeep.checkpoint.certificate.set_members import SetMember, source_of
from logkeep.checkpoint.certificate.tables import (
    INDEX_BITS,
    CutTables,
    Pair,
    PartitionFacts,
    SystemKeys,
    Violations,
    message_name,
)
from logkeep.checkpoint.records import Kind
from logkeep.model.plurals import plural
from logkeep.repository.backups.certificate import MOST_NAMED, CapturedMember, Certificate, Outcome, RuleOutcome

TITLES = {
    "V1": "one checkpoint of this id in each partition, in order",
    "V2": "no record of the cut carries the id of the cut or a later one",
    "V3": "stamps are not older than their senders",
    "V4": "what was received was sent inside the cut",
    "V5": "messages in transit are sent again",
    "V6": "no transaction and no batch is split",
    "V7": "every event follows its command",
    "V8": "logs are complete and of one history",
    "V9": "logs continue their snapshots",
    "V10": "the state is what the archived events give",
    "V11": "every message is received or pending, once",
    "V12": "positions agree with the archive",
    "V13": "external positions are covered",
}
RULES = tuple(TITLES)
CLIENTS = "clients that read from one partition and write to another are not observed"


@dataclass(frozen=True)
class ArchivedCut:
    """What the manifest says of a partition: its log, and the position of its snapshot, -1 without one."""

    start: int = -1
    end: int = -1
    snapshot: int = -1


@dataclass(frozen=True)
class CutEvidence:
    """Everything that tasks returned, by partition."""

    tables: CutTables
    archived: Sequence[ArchivedCut]
    snapshots: Mapping[int, SystemKeys]
    logs: Sequence[PartitionFacts]
    members: Sequence[SetMember] = ()
    """Other sources with a backup of the same id."""
    captured: Sequence[CapturedMember] = ()
    """All members of the set, in the order in which their backups began; empty without a set."""

    @cached_property
    def violations(self) -> Violations:
        found = Violations()
        for log in self.logs:
            found.join(log.violations)
        return found

    @cached_property
    def damaged(self) -> list[PartitionFacts]:
        return [log for log in self.logs if log.damaged]

    @cached_property
    def in_transit(self) -> dict[Pair, list[int]]:
        """Messages that are pending and not received, by sender and receiver."""
        found: dict[Pair, list[int]] = {}
        for log in self.logs:
            for receiver, key in log.pending:
                if receiver < len(self.logs) and key not in self._received[receiver].get(log.partition, frozenset()):
                    found.setdefault((log.partition, receiver), []).append(key)
        return found

    @cached_property
    def _received(self) -> list[dict[int, frozenset[int]]]:
        return [{sender: frozenset(keys) for sender, keys in log.memory.items()} for log in self.logs]


def certify(found: CutEvidence, unequal: Mapping[Pair, Sequence[str]] | None = None) -> Certificate:
    """The certificate. `unequal` names the messages of the pairs that `unequal_pairs` returned."""
    rules = tuple(_outcome(found, rule, unequal or {}) for rule in RULES)
    return Certificate(
        application=found.tables.application,
        history=found.tables.history,
        checkpoint=found.tables.checkpoint,
        rules=rules,
        records=sum(log.records for log in found.logs),
        in_transit=sum(map(len, found.in_transit.values())),
        declared=(CLIENTS, *_unobserved(found.members)),
        captured=tuple(found.captured),
    )


def unequal_pairs(found: CutEvidence) -> list[Pair]:
    """Senders and receivers of which not every message is received or pending exactly once."""
    wrong = []
    pairs = {(log.partition, receiver) for log in found.logs for receiver in log.sent}
    pairs |= {(sender, log.partition) for log in found.logs for sender in log.received}
    for sender, receiver in sorted(pairs | set(found.in_transit)):
        start = found.tables.counted_from(sender, receiver)
        keys = [key for key in found.in_transit.get((sender, receiver), ()) if key >> INDEX_BITS >= start]
        sent = found.logs[sender].sent.get(receiver, (0, 0, 0))
        received = found.logs[receiver].received.get(sender, (0, 0, 0))
        if added(sent, received, -1) != hash_sums(np.array(keys, np.int64), found.tables.seed):
            wrong.append((sender, receiver))
    return wrong


def unequal_names(pair: Pair, sent: Sequence[int], received: Sequence[int], in_transit: Sequence[int]) -> list[str]:
    """Which messages of a pair break V11, from the keys of all its messages."""
    sender, receiver = pair
    there = set(received) | set(in_transit)
    lost = [f"{message_name(sender, key)} to {receiver} is neither received nor pending" for key in set(sent) - there]
    made = [f"{message_name(sender, key)} to {receiver} was sent by no event" for key in there - set(sent)]
    both = set(received) & set(in_transit)
    return sorted(lost) + sorted(made) + [f"{message_name(sender, key)} to {receiver} is there twice" for key in both]


def _outcome(found: CutEvidence, rule: str, unequal: Mapping[Pair, Sequence[str]]) -> RuleOutcome:
    if found.damaged:
        names = [f"{log.damaged[0]}: {log.damaged[1]}" for log in found.damaged if log.damaged]
        if rule == "V8":
            return _rule(rule, "broken", "objects cannot be read", names)
        return _rule(rule, "unchecked", f"{plural(len(names), 'log')} cannot be read to the end")
    if rule == "V11":
        return _exactly_once(found, unequal)
    records, what, reason = _CHECKS[rule](found)
    named = [*found.violations.records.get(rule, ()), *records]
    count = found.violations.counts.get(rule, 0) + len(records)
    if count:
        return _rule(rule, "broken", f"{plural(count, 'violation')}", named, count)
    return _rule(rule, "unchecked", reason) if reason else _rule(rule, "held", what)


def _rule(rule: str, outcome: Outcome, what: str, records: Sequence[str] = (), count: int = 0) -> RuleOutcome:
    named = tuple(records[:MOST_NAMED])
    return RuleOutcome(
        rule=rule, title=TITLES[rule], outcome=outcome, what=what, records=named, count=count or len(records)
    )


def _unobserved(members: Sequence[SetMember]) -> list[str]:
    """Channels between the members of a set: only reported positions are compared."""
    names = ", ".join(member.source for member in members)
    what = "what the application reads there, what it writes without reporting a position, and what others write"
    return [f"{names}: {what}"] if members else []


Checked = tuple[list[str], str, str]
"""What breaks the rule, what was compared, and why nothing could be."""


def _checkpoints(found: CutEvidence) -> Checked:
    wrong, tables = list[str](), found.tables
    for claim, log in zip(tables.claims, found.logs, strict=True):
        where = f"partition {claim.partition}"
        if (tables.checkpoint, claim.position) not in log.creates:
            wrong.append(f"{where}: no create of {tables.checkpoint} took effect at {claim.position}")
        if log.last_record != (claim.position, Kind.CREATE):
            wrong.append(f"{where}: the last record, at {log.last_record[0]}, is not the create at {claim.position}")
        elif log.final_create[:2] != (tables.checkpoint, tables.history) or log.final_create[2] not in (
            "",
            tables.nonce,
        ):
            wrong.append(f"{where}: the create at {claim.position} is of another request")
        own = {each for each in claim.checkpoints if each[1] >= claim.log_start}
        wrong += [f"{where}: checkpoint {n} is not at {at}" for n, at in sorted(own - set(log.creates))]
    count = sum(len(log.creates) for log in found.logs)
    return wrong, f"{plural(count, 'checkpoint')} in {plural(len(found.logs), 'log')}", ""


def _stamps(found: CutEvidence) -> Checked:
    total = sum(log.records for log in found.logs)
    return [], f"stamps of {plural(total, 'record')}", ""


def _transit(found: CutEvidence) -> Checked:
    wrong = []
    for (sender, receiver), keys in found.in_transit.items():
        low = found.logs[receiver].lows.get(sender, 0)
        wrong += [
            f"{message_name(sender, key)} is pending, and partition {receiver} ignores it: its mark is {low}"
            for key in keys
            if key >> INDEX_BITS < low
        ]
    count = sum(map(len, found.in_transit.values()))
    return wrong, f"{plural(count, 'message')} in transit, all in the outbox of their senders", ""


def _split(found: CutEvidence) -> Checked:
    opened = [
        f"partition {log.partition}: the transaction that begins at {first} does not end inside the cut"
        for log in found.logs
        for first in log.open_transactions
    ]
    return opened, "creates end their batches", ""


def _complete(found: CutEvidence) -> Checked:
    wrong = [
        f"partition {log.partition}: the log has {log.first} to {log.end}, the cut {claim.log_start} to {claim.cut_end}"
        for claim, log in zip(found.tables.claims, found.logs, strict=True)
        if (log.first, log.end) != (claim.log_start, claim.cut_end)
    ]
    total = sum(log.records for log in found.logs)
    return wrong, f"{plural(total, 'record')} without a hole", ""


def _continued(found: CutEvidence) -> Checked:
    wrong = []
    for claim in found.tables.claims:
        where, snapshot = f"partition {claim.partition}", found.snapshots.get(claim.partition)
        if claim.snapshot_position >= claim.position:
            wrong.append(
                f"{where}: the snapshot at {claim.snapshot_position} is not before the create at {claim.position}"
            )
        if claim.log_start > claim.snapshot_position + 1:
            wrong.append(
                f"{where}: the log begins at {claim.log_start}, the snapshot ends at {claim.snapshot_position}"
            )
        if snapshot and snapshot.problem and not snapshot.unknown:
            wrong.append(f"{where}: {snapshot.problem}")
        elif snapshot and not snapshot.unknown and snapshot.position != claim.snapshot_position:
            wrong.append(f"{where}: the snapshot has {snapshot.position}, not {claim.snapshot_position}")
    unknown = [f"partition {s.partition}: {s.problem}" for s in found.snapshots.values() if s.unknown]
    return wrong, plural(len(found.snapshots), "snapshot"), "; ".join(unknown[:1])


def _state(found: CutEvidence) -> Checked:
    wrong, unknown = list[str](), list[str]()
    for claim, log in zip(found.tables.claims, found.logs, strict=True):
        where, snapshot = f"partition {claim.partition}", found.snapshots.get(claim.partition)
        if log.snapshot_problem or (snapshot and snapshot.problem):
            unknown.append(f"{where}: {log.snapshot_problem or (snapshot.problem if snapshot else '')}")
        elif not claim.state_digest:
            unknown.append(f"{where}: the application reported no digest")
        elif log.state_digest != claim.state_digest:
            wrong.append(f"{where}: the state has the digest {log.state_digest}, reported was {claim.state_digest}")
    keys = sum(log.keys for log in found.logs)
    return wrong, f"digests of {plural(keys, 'key')}", "; ".join(unknown[:1])


def _positions(found: CutEvidence) -> Checked:
    wrong = []
    for claim, cut in zip(found.tables.claims, found.archived, strict=True):
        where = f"partition {claim.partition}"
        if (cut.start, cut.end) != (claim.log_start, claim.cut_end):
            wrong.append(f"{where}: archived are {cut.start} to {cut.end}, not {claim.log_start} to {claim.cut_end}")
        if cut.snapshot != claim.snapshot_position:
            wrong.append(f"{where}: the archived snapshot is at {cut.snapshot}, not at {claim.snapshot_position}")
        if not claim.log_start <= claim.position < claim.cut_end:
            wrong.append(f"{where}: the create at {claim.position} is not inside the archived log")
    return wrong, f"positions of {plural(len(found.tables.claims), 'partition')}", ""


def _external(found: CutEvidence) -> Checked:
    wrong, unknown, seen = list[str](), set[str](), dict[str, int]()
    for claim, log in zip(found.tables.claims, found.logs, strict=True):
        for name, position in log.external.items():
            seen[name] = max(seen.get(name, -1), position)
            if claim.external.get(name, -1) < position:
                said = claim.external.get(name, "none")
                wrong.append(f"partition {claim.partition}: {name} at {position} was seen, reported is {said}")
    cuts = {name: cut for member in found.members for name, cut in member.cuts.items()}
    unordered, later_epochs = 0, list[str]()
    for name, position in sorted(seen.items()):
        if name not in cuts:
            unknown.add(_no_cut(name, found.members))
        elif cuts[name].position < position:
            wrong.append(f"{name} ends at {cuts[name].position}, and the application has seen {position}")
        elif (after := cuts[name].unordered_after(position)) is None:
            later_epochs.append(name)
        else:
            unordered += after
    what = f"{plural(len(seen), 'external position')}, {unordered} unordered"
    if later_epochs:
        what += f"; not counted where a later epoch began: {', '.join(later_epochs)}"
    return wrong, what, "; ".join(sorted(unknown)[:3])


def _no_cut(name: str, members: Sequence[SetMember]) -> str:
    """Why an external position cannot be compared."""
    member = next((each for each in members if each.source == source_of(name)), None)
    if member is None:
        return f"{name} is not part of this backup"
    return member.problem or f"{name} is not in the cut of {member.source}"


_CHECKS: Mapping[str, Callable[[CutEvidence], Checked]] = {
    "V1": _checkpoints,
    "V2": _stamps,
    "V3": _stamps,
    "V4": _stamps,
    "V5": _transit,
    "V6": _split,
    "V7": lambda _: ([], "events and commands compared", ""),
    "V8": _complete,
    "V9": _continued,
    "V10": _state,
    "V12": _positions,
    "V13": _external,
}


def _exactly_once(found: CutEvidence, unequal: Mapping[Pair, Sequence[str]]) -> RuleOutcome:
    named = list(found.violations.records.get("V11", ()))
    for pair in unequal_pairs(found):
        default = [f"messages of partition {pair[0]} to {pair[1]} are lost or there twice"]
        named += unequal.get(pair) or default
    if named or "V11" in found.violations.counts:
        return _rule("V11", "broken", plural(len(named), "violation"), named)
    blind = [s for s in found.snapshots.values() if s.problem]
    if blind:
        return _rule("V11", "unchecked", f"partition {blind[0].partition}: {blind[0].problem}")
    late = [claim.partition for claim in found.tables.claims if claim.log_start > 0]
    count = sum(total for log in found.logs for _, _, total in log.sent.values())
    what = plural(count, "message")
    if late:
        start = found.tables.claims[late[0]].log_start
        what += f"; what partition {late[0]} sent before {start} is known by its snapshot alone"
    return _rule("V11", "held", what)
