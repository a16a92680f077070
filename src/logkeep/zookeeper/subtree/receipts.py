"""The documents of a subtree restore in the repository: its plan before anything is changed, and its receipt.

The documents and the journal name each other, so that a resume or an undo by the journal can be recorded here. The
documents hold paths, counts and the journal's place; never the data of nodes, their ACLs, or credentials.
"""

import socket
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from logkeep.errors import LogkeepError
from logkeep.formats.zookeeper import shown
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.model.findings import Finding, Severity
from logkeep.model.ids import RestoreId
from logkeep.model.time import Clock, TokenSource
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.restores import (
    NewRestore,
    ReceiptDocument,
    RestoreTargetRef,
    RestoreVerdict,
)
from logkeep.repository.restores.stored import StoredRestore
from logkeep.zookeeper.repo.record import KIND
from logkeep.zookeeper.subtree.journal import Heading, StoredAs, read_journal
from logkeep.zookeeper.subtree.prepare import NEVER_RESTORED, PreparedSubtree
from logkeep.zookeeper.subtree.run import SubtreeRunEnd
from logkeep.zookeeper.timeline.plan import RestorePath

_PATHS: Final = 10
"""How many paths of each kind of change are named; the journal has all."""
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
class SubtreeStart:
    """What a subtree restore begins with."""

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


def begin_subtree(state: SourceRef, wanted: SubtreeStart, clock: Clock, tokens: TokenSource) -> StoredRestore:
    """Store the plan. Raises StoreDenied where nothing may be written."""
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
    return StoredRestore.begin(state, new, clock, tokens, wanted.before_s)


def stored_as(stored: StoredRestore) -> StoredAs:
    """The reference to it in the journal."""
    return StoredAs(repository=stored.state.repository, source=stored.state.source, restore=int(stored.id))


def find_subtree(state: SourceRef, heading: Heading, clock: Clock, tokens: TokenSource) -> StoredRestore | None:
    """The stored restore that a journal names; None when it is not one of this repository."""
    named = heading.stored
    if named is msgspec.UNSET or (named.repository, named.source) != (state.repository, state.source):
        return None
    found = StoredRestore.find(state, RestoreId(named.restore), SubtreeBody, clock, tokens)
    return None if found is None else found[0]


def note_done(stored: StoredRestore, ended: SubtreeRunEnd) -> ReceiptDocument:
    body, checked = stored.body(SubtreeBody), ended.checked
    read = {"nodes read again": str(checked.nodes), "of these different": str(len(checked.differing))}
    if checked.unreadable:
        read["not read again, for their ACLs"] = str(len(checked.unreadable))
    what = "another client has changed it since"
    since = (_finding("changed-since", Severity.WARNING, path, what) for path in checked.differing[:_FINDINGS])
    facts = {**body.facts, "changes made": str(ended.changes), "requests": str(ended.batches), **read}
    return stored.ended(RestoreVerdict.PART, (*since, *body.findings), facts)


def note_stopped(stored: StoredRestore, error: LogkeepError) -> ReceiptDocument:
    """The changes that were made stay; the journal can undo them."""
    body = stored.body(SubtreeBody)
    facts = {**body.facts, "changes made": _made_so_far(body)}
    return stored.failed(error, body.subtree, RestoreVerdict.STOPPED, body.findings, facts)


def note_undone(stored: StoredRestore, ended: SubtreeRunEnd) -> None:
    but = ", except nodes that another client has changed" if ended.heading.left_alone else ""
    stored.abort(f"undone by its user{but}")


def _made_so_far(body: SubtreeBody) -> str:
    try:
        recorded = read_journal(Path(body.journal))
    except LogkeepError:
        return "0"
    done = sum(len(batch.changes) for batch in recorded.batches[: recorded.done]) - len(recorded.gone)
    doubt = ", and the next request perhaps" if recorded.in_doubt else ""
    return f"{done} of {sum(len(batch.changes) for batch in recorded.batches)}{doubt}"


def _planned_facts(wanted: SubtreeStart) -> Iterator[tuple[str, str]]:
    planned = wanted.prepared.planned
    yield "subtree", shown(wanted.top)
    yield "tree at", hex_zxid(wanted.way.until)
    yield "proof", ", ".join([wanted.way.proof, *wanted.way.labels])
    for kind, word in _WORDS.items():
        paths = [change.path for change in planned.changes if change.__struct_config__.tag == kind]
        if paths:
            yield word, _first_paths(paths)
    if planned.left_out:
        reasons = Counter(each.why for each in planned.left_out)
        yield "left out", "; ".join(f"{number}: {why}" for why, number in reasons.items())
    if planned.extra:
        yield "live nodes that the backup does not have", str(planned.extra)
    yield "journal, for an undo", f"{socket.gethostname()}: {wanted.journal}"


def _first_paths(paths: list[bytes]) -> str:
    more = f", and {len(paths) - _PATHS} more" if len(paths) > _PATHS else ""
    return f"{len(paths)}: {', '.join(shown(path) for path in paths[:_PATHS])}{more}"


def _planned_findings(wanted: SubtreeStart) -> Iterator[Finding]:
    planned = wanted.prepared.planned
    for each in planned.left_out[:_FINDINGS]:
        severity = Severity.WARNING if each.lost else Severity.NOTE
        yield _finding("left-out", severity, each.path, f"left out: {each.why}")
    for path in planned.masked[:_FINDINGS]:
        what = "an undo cannot restore its ACLs: the server shows only a part of them"
        yield _finding("acls-not-shown", Severity.WARNING, path, what)
    for path in planned.not_compared[:_FINDINGS]:
        what = "its ACLs cannot be compared: without admin rights the server shows only a part of them"
        yield _finding("acls-not-compared", Severity.WARNING, path, what)
    for each_kind in NEVER_RESTORED:
        yield _finding("not-restored-live", Severity.NOTE, wanted.target, f"not restored: {each_kind}")


def _finding(code: str, severity: Severity, path: bytes, what: str) -> Finding:
    return Finding(code=code, severity=severity, where=shown(path), what=what)
