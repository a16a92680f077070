"""What a repository keeps of restores of ZooKeeper: what was decided before anything was changed, and how it ended.

The journal in a server's directory and the documents here name each other, so that whoever ends an interrupted restore
on the server's host can say so here too.
"""

import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec

from logkeep.errors import Damaged, ObjectMissing
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.model.segments import Proof
from logkeep.model.time import Clock, TokenSource
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.restores import (
    NewRestore,
    RestoreState,
    RestoreTargetRef,
    RestoreVerdict,
    begin_restore,
    list_restores,
    newest_receipt,
    plan_body,
    read_plan,
)
from logkeep.repository.restores.stored import StoredRestore
from logkeep.zookeeper.repo.record import KIND
from logkeep.zookeeper.restore.prepare import PreparedRestore
from logkeep.zookeeper.restore.values import Form, RestoreReceipt, Sessions
from logkeep.zookeeper.timeline.plan import EPOCH_BELIEVED


class PlanBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The part of a stored plan that only ZooKeeper has."""

    journal: str
    """Under which name the journal in the servers' directories goes."""
    zxid: int
    named_zxid: int
    epoch: int | None
    sessions: Sessions
    form: Form
    proof: Proof
    labels: tuple[str, ...]
    data_dirs: tuple[str, ...]
    log_dirs: tuple[str, ...]


@dataclass(frozen=True)
class RestoreStart:
    """What a restore is begun with, besides its plan."""

    journal: str
    backup: int
    options: Mapping[str, str]
    drill: bool = False
    before_s: float = 0.0
    """See `StoredRestore`."""


def begin(
    state: SourceRef, prepared: PreparedRestore, wanted: RestoreStart, clock: Clock, tokens: TokenSource
) -> StoredRestore:
    """Store the plan, before anything is changed. Raises StoreDenied where nothing may be written."""
    planned, path = prepared.planned, prepared.path
    body = PlanBody(
        journal=wanted.journal,
        zxid=planned.zxid,
        named_zxid=planned.named,
        epoch=planned.epoch,
        sessions=planned.sessions,
        form=planned.form,
        proof=path.proof,
        labels=path.labels,
        data_dirs=tuple(str(place.data_dir) for place in prepared.places),
        log_dirs=tuple(str(place.log_dir) for place in prepared.places),
    )
    new = NewRestore(
        backup=wanted.backup,
        kind=KIND,
        target=RestoreTargetRef(cluster_id="", name=_target(body, drill=wanted.drill)),
        body=msgspec.json.encode(body),
        options=dict(wanted.options),
        drill=wanted.drill,
    )
    restore_id = begin_restore(state, new, clock, tokens)
    return StoredRestore(state, restore_id, read_plan(state, restore_id), clock, tokens, wanted.before_s)


def _target(body: PlanBody, *, drill: bool) -> str:
    return "a server of its own" if drill else f"{socket.gethostname()}: {', '.join(body.data_dirs)}"


def find(state: SourceRef, journal: str, clock: Clock, tokens: TokenSource) -> StoredRestore | None:
    """The restore that a journal belongs to; the newest are asked first."""
    for row in reversed(list_restores(state)):
        try:
            plan = read_plan(state, row.id)
            if plan.kind == KIND and plan_body(plan, PlanBody).journal == journal:
                return StoredRestore(state, row.id, plan, clock, tokens)
        except (Damaged, ObjectMissing):
            continue
    return None


def note_continued(restore: StoredRestore) -> None:
    """It was interrupted in the middle of the swap, and ended: what was staged had been proven before."""
    newest = newest_receipt(restore.state, restore.id)
    if newest is None or newest.verdict is RestoreVerdict.FAILED:
        body = body_of(restore)
        restore.ended(verdict_of(body), facts=dict(_planned_facts(body)))


def note_rolled_back(restore: StoredRestore) -> None:
    rows = {row.id: row for row in list_restores(restore.state)}
    row = rows.get(restore.id)
    if row is None or row.state is not RestoreState.ABORTED:
        restore.given_up("rolled back by its user")


def body_of(restore: StoredRestore) -> PlanBody:
    return plan_body(restore.plan, PlanBody)


def verdict_of(body: PlanBody) -> RestoreVerdict:
    """A bound without a digest is a proof, and says so; what nobody was asked about, or is believed, is none."""
    doubtful = body.proof is Proof.UNPROVEN or EPOCH_BELIEVED in body.labels
    return RestoreVerdict.UNPROVEN if doubtful else RestoreVerdict.PROVEN


def _planned_facts(body: PlanBody) -> Iterator[tuple[str, str]]:
    yield "tree at", hex_zxid(body.zxid)
    yield "servers start at", hex_zxid(body.named_zxid)
    if body.epoch is not None:
        yield "epoch", str(body.epoch)
    yield "sessions", body.sessions
    yield "form", body.form
    yield "proof", ", ".join([body.proof, *body.labels])
    yield "journal", body.journal


def facts_of(body: PlanBody, receipt: RestoreReceipt) -> dict[str, str]:
    """All that a finished restore has to tell."""
    found = dict(_planned_facts(body))
    found["nodes"] = str(receipt.nodes)
    found["replayed"] = f"{receipt.transactions} transactions, {receipt.digests_compared} digests compared"
    if receipt.dropped_sessions or receipt.dropped_ephemerals:
        found["dropped"] = f"{receipt.dropped_sessions} sessions, {receipt.dropped_ephemerals} ephemeral nodes"
    for target in receipt.targets:
        for file in target.files:
            found[f"{target.data_dir} {file.name}"] = f"{file.size_bytes} bytes, sha256 {file.sha256}"
        if target.kept:
            found[f"{target.data_dir} before"] = ", ".join(target.kept)
    return found
