"""The documents of a ZooKeeper restore in the repository: its plan before anything is changed, and its receipt.

The journal in a server's directory has the name that the plan stores. So a continue or a rollback on the server's host
can be recorded in the repository too.
"""

import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec

from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.model.plurals import plural
from logkeep.model.segments import Proof
from logkeep.model.time import Clock, TokenSource
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.restores import (
    NewRestore,
    RestoreTargetRef,
    RestoreVerdict,
    list_restores,
)
from logkeep.repository.restores.stored import StoredRestore
from logkeep.zookeeper.repo.record import KIND
from logkeep.zookeeper.restore.prepare import PreparedRestore
from logkeep.zookeeper.restore.values import Form, RestoreReceipt, Sessions
from logkeep.zookeeper.timeline.plan import EPOCH_BELIEVED


class PlanBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The part of a stored plan that only a restore of server directories has."""

    journal: str
    """The name of the journal in the servers' directories."""
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
class ZooKeeperRestoreStart:
    """What a restore begins with, besides its plan."""

    journal: str
    backup: int
    options: Mapping[str, str]
    drill: bool = False
    before_s: float = 0.0
    """See `StoredRestore`."""


def begin(
    state: SourceRef, prepared: PreparedRestore, wanted: ZooKeeperRestoreStart, clock: Clock, tokens: TokenSource
) -> StoredRestore:
    """Store the plan. Raises StoreDenied where nothing may be written."""
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
    target = "a server of its own" if wanted.drill else f"{socket.gethostname()}: {', '.join(body.data_dirs)}"
    new = NewRestore(
        backup=wanted.backup,
        kind=KIND,
        target=RestoreTargetRef(cluster_id="", name=target),
        body=msgspec.json.encode(body),
        options=dict(wanted.options),
        drill=wanted.drill,
    )
    return StoredRestore.begin(state, new, clock, tokens, wanted.before_s)


def find(state: SourceRef, journal: str, clock: Clock, tokens: TokenSource) -> StoredRestore | None:
    """The newest restore with this journal."""
    for row in reversed(list_restores(state)):
        found = StoredRestore.find(state, row.id, PlanBody, clock, tokens)
        if found is not None and found[1].journal == journal:
            return found[0]
    return None


def note_continued(restore: StoredRestore) -> None:
    """Store a receipt after a continue, if there is none yet: what was staged had been proven before."""
    newest = restore.receipt()
    if newest is None or newest.verdict is RestoreVerdict.FAILED:
        body = restore.body(PlanBody)
        restore.ended(verdict_of(body), facts=dict(_planned_facts(body)))


def verdict_of(body: PlanBody) -> RestoreVerdict:
    """A proven lower bound counts as a proof, also without a digest. Believed ends of epochs are unproven."""
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
    """All facts in the receipt of a finished restore."""
    found = dict(_planned_facts(body))
    found["nodes"] = str(receipt.nodes)
    digests = plural(receipt.digests_compared, "digest")
    found["replayed"] = f"{plural(receipt.transactions, 'transaction')}, {digests} compared"
    if receipt.dropped_sessions or receipt.dropped_ephemerals:
        nodes = plural(receipt.dropped_ephemerals, "ephemeral node")
        found["dropped"] = f"{plural(receipt.dropped_sessions, 'session')}, {nodes}"
    for target in receipt.targets:
        for file in target.files:
            found[f"{target.data_dir} {file.name}"] = f"{file.size_bytes} bytes, sha256 {file.sha256}"
        if target.kept:
            found[f"{target.data_dir} before"] = ", ".join(target.kept)
    return found
