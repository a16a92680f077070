"""What a repository keeps of a subtree's restore: what was decided before anything was changed, and how it ended.

The documents and the journal name each other: whoever goes on with the journal, or undoes it, can say so here. They
hold paths, counts and where the journal is; never the data of nodes, their ACLs, or credentials.
"""

import socket
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from logkeep.errors import Damaged, LogkeepError, ObjectMissing
from logkeep.formats.zookeeper import shown
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.model.findings import Finding, Severity
from logkeep.model.ids import RestoreId
from logkeep.model.time import Clock, TokenSource
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.restores import (
    NewRestore,
    ReceiptDocument,
    RestoreState,
    RestoreTargetRef,
    RestoreVerdict,
    begin_restore,
    list_restores,
    plan_body,
    read_plan,
)
from logkeep.repository.restores.stored import StoredRestore
from logkeep.zookeeper.repo.record import KIND
from logkeep.zookeeper.subtree.changes import Change
from logkeep.zookeeper.subtree.journal import Heading, StoredAs, read_journal
from logkeep.zookeeper.subtree.prepare import NEVER_RESTORED, PreparedSubtree
from logkeep.zookeeper.subtree.run import SubtreeRunEnd
from logkeep.zookeeper.subtree.wanted import SkippedNode
from logkeep.zookeeper.timeline.plan import RestorePath

_PATHS: Final = 10
"""Of each kind of change, that are told by name; the journal has all."""
_FINDINGS: Final = 1_000
_WORDS: Final = {"create": "created", "set": "set", "delete": "deleted", "acls": "other ACLs"}


class SubtreeBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The part of a stored plan that only a subtree's restore has."""

    subtree: str
    """In the live tree."""
    journal: str
    zxid: int
    facts: dict[str, str]
    """Of the plan, for people."""
    findings: tuple[Finding, ...]
    """What is left out, and what no live restore brings back."""


@dataclass(frozen=True)
class SubtreeWanted:
    """What a subtree's restore is begun with."""

    backup: int
    way: RestorePath
    prepared: PreparedSubtree
    top: bytes
    """In the backup."""
    target: bytes
    """In the live tree."""
    hosts: str
    journal: Path
    options: Mapping[str, str] = field(default_factory=dict)
    before_s: float = 0.0
    """Spent on reading and replaying."""


def begin_subtree(state: SourceRef, wanted: SubtreeWanted, clock: Clock, tokens: TokenSource) -> StoredRestore:
    """Store the plan, before anything is changed. Raises StoreDenied where nothing may be written."""
    body = SubtreeBody(
        subtree=shown(wanted.target),
        journal=str(wanted.journal),
        zxid=wanted.way.until,
        facts=dict(_planned_facts(wanted)),
        findings=tuple(_planned_findings(wanted)),
    )
    new = NewRestore(
        backup=wanted.backup,
        kind=KIND,
        target=RestoreTargetRef(cluster_id="", name=f"{shown(wanted.target)} at {wanted.hosts}"),
        body=msgspec.json.encode(body),
        options=dict(wanted.options),
    )
    restore_id = begin_restore(state, new, clock, tokens)
    return StoredRestore(state, restore_id, read_plan(state, restore_id), clock, tokens, wanted.before_s)


def stored_as(stored: StoredRestore) -> StoredAs:
    """How the journal calls it."""
    return StoredAs(repository=stored.state.repository, source=stored.state.source, restore=int(stored.id))


def find_subtree(state: SourceRef, heading: Heading, clock: Clock, tokens: TokenSource) -> StoredRestore | None:
    """The stored restore that a journal names; None when it is not one of this repository."""
    named = heading.stored
    if named is msgspec.UNSET or (named.repository, named.source) != (state.repository, state.source):
        return None
    try:
        plan = read_plan(state, RestoreId(named.restore))
        plan_body(plan, SubtreeBody)
    except (Damaged, ObjectMissing):
        return None
    return StoredRestore(state, RestoreId(named.restore), plan, clock, tokens)


def note_done(stored: StoredRestore, ended: SubtreeRunEnd) -> ReceiptDocument:
    body, checked = plan_body(stored.plan, SubtreeBody), ended.checked
    read = {"nodes read again": str(checked.nodes), "of these different": str(len(checked.differing))}
    if checked.unreadable:
        read["not read again, for their ACLs"] = str(len(checked.unreadable))
    since = (_finding("changed-since", Severity.WARNING, path, "somebody else has changed it since")
             for path in checked.differing[:_FINDINGS])  # fmt: skip
    facts = {**body.facts, "changes made": str(ended.changes), "requests": str(ended.batches), **read}
    return stored.ended(RestoreVerdict.PART, (*since, *body.findings), facts)


def note_stopped(stored: StoredRestore, error: LogkeepError) -> ReceiptDocument:
    """What was done until then stays, and the journal can take it back."""
    body = plan_body(stored.plan, SubtreeBody)
    finding = Finding(
        code=error.slug(), severity=Severity.DAMAGE, where=error.subject or body.subtree, what=error.what,
        remedy=error.remedy,
    )  # fmt: skip
    return stored.ended(
        RestoreVerdict.STOPPED, (finding, *body.findings), {**body.facts, "changes made": _made_so_far(body)}
    )


def note_undone(stored: StoredRestore, ended: SubtreeRunEnd) -> None:
    but = ", but for nodes that somebody else has changed" if ended.heading.left_alone else ""
    rows = {row.id: row for row in list_restores(stored.state)}
    row = rows.get(stored.id)
    if row is None or row.state is not RestoreState.ABORTED:
        stored.given_up(f"undone by its user{but}")


def _made_so_far(body: SubtreeBody) -> str:
    try:
        recorded = read_journal(Path(body.journal))
    except LogkeepError:
        return "0"
    done = sum(len(batch.changes) for batch in recorded.batches[: recorded.done]) - len(recorded.gone)
    doubt = ", and the next request perhaps" if recorded.in_doubt else ""
    return f"{done} of {sum(len(batch.changes) for batch in recorded.batches)}{doubt}"


def _planned_facts(wanted: SubtreeWanted) -> Iterator[tuple[str, str]]:
    planned = wanted.prepared.planned
    yield "subtree", shown(wanted.top)
    yield "tree at", hex_zxid(wanted.way.until)
    yield "proof", ", ".join([wanted.way.proof, *wanted.way.labels])
    for kind, word in _WORDS.items():
        paths = [change.path for change in planned.changes if _kind(change) == kind]
        if paths:
            yield word, _some(paths)
    if planned.left_out:
        reasons = Counter(each.why for each in planned.left_out)
        yield "left out", "; ".join(f"{number}: {why}" for why, number in reasons.items())
    if planned.extra:
        yield "live nodes that the backup does not have", str(planned.extra)
    yield "journal, for an undo", f"{socket.gethostname()}: {wanted.journal}"


def _kind(change: Change) -> str:
    return str(change.__struct_config__.tag)


def _some(paths: list[bytes]) -> str:
    more = f", and {len(paths) - _PATHS} more" if len(paths) > _PATHS else ""
    return f"{len(paths)}: {', '.join(shown(path) for path in paths[:_PATHS])}{more}"


def _planned_findings(wanted: SubtreeWanted) -> Iterator[Finding]:
    planned = wanted.prepared.planned
    for each in planned.left_out[:_FINDINGS]:
        yield _left_out(each)
    for path in planned.masked[:_FINDINGS]:
        what = "an undo cannot bring back its ACLs: the server shows them in part only"
        yield _finding("acls-not-shown", Severity.WARNING, path, what)
    for path in planned.not_compared[:_FINDINGS]:
        what = "its ACLs cannot be compared: without admin rights the server shows them in part only"
        yield _finding("acls-not-compared", Severity.WARNING, path, what)
    for each_kind in NEVER_RESTORED:
        yield _finding("not-restored-live", Severity.NOTE, wanted.target, f"not restored: {each_kind}")


def _left_out(each: SkippedNode) -> Finding:
    return _finding("left-out", Severity.WARNING if each.lost else Severity.NOTE, each.path, f"left out: {each.why}")


def _finding(code: str, severity: Severity, path: bytes, what: str) -> Finding:
    return Finding(code=code, severity=severity, where=shown(path), what=what)
