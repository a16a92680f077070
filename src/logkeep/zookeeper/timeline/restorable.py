"""Asks the restore planner, before a backup is committed, whether it can be restored. Pure.

A backup from which nothing can be restored is refused; one whose end cannot be restored gets a finding.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from logkeep.errors import BackupFailed
from logkeep.model.findings import Finding, Severity
from logkeep.zookeeper.model.archived import ArchivedLog, ArchivedSnapshot, FileOrigin, Member
from logkeep.zookeeper.model.findings import NAME_LOG_DIR
from logkeep.zookeeper.timeline.holdings import BorderProof, Holdings
from logkeep.zookeeper.timeline.plan import RestorePath, RestoreRefused, ToEnd, plan
from logkeep.zookeeper.timeline.timeline import line_of

_ANOTHER = "back up another member, or restart this one, which makes it write a snapshot"


class _Timeless:
    """Times do not matter here."""

    def time_of(self, log: ArchivedLog, zxid: int) -> int | None:
        return None

    def first_later(self, log: ArchivedLog, first: int, last: int, time_ms: int) -> tuple[int, int] | None:
        return None


@dataclass(frozen=True)
class Restorable:
    findings: tuple[Finding, ...]
    believed: frozenset[tuple[int, int]]
    """Ends of epochs, as last and first transaction, that a majority agrees on or digests will prove."""


def check_restorable(
    members: Sequence[Member],
    snapshots: Sequence[ArchivedSnapshot],
    logs: Sequence[ArchivedLog],
    history: str,
    subject: str,
) -> Restorable:
    """Raises BackupFailed if no point in time can be restored. A snapshot over HTTP may lack its logs."""
    voters = max((m.voters for m in members if m.voters is not None), default=None)
    whole = tuple(each for each in snapshots if not _lacks_logs(each, logs))
    if not whole and snapshots and not logs:
        return Restorable((), frozenset())
    holdings = Holdings(whole, tuple(logs), tuple(members), voters=voters)
    path = plan(holdings, ToEnd(), _Timeless(), history=history)
    if isinstance(path, RestoreRefused) and not path.reachable:
        raise BackupFailed(
            f"nothing could be restored from it: {path.what}",
            subject=subject,
            remedy=_ANOTHER if logs else f"no log was found: {NAME_LOG_DIR}",
        )
    good = {BorderProof.MAJORITY, BorderProof.BY_DIGEST, BorderProof.BEGINNING}
    borders = line_of(holdings, history).borders
    believed = frozenset((b.before, b.after) for b in borders if b.proof in good)
    return Restorable(_end_unreachable(path) if isinstance(path, RestoreRefused) else (), believed)


def end_of(
    members: Sequence[Member], snapshots: Sequence[ArchivedSnapshot], logs: Sequence[ArchivedLog], history: str
) -> RestorePath | None:
    """The path to the last transaction, if there is one; unproven ends of epochs are accepted."""
    holdings = Holdings(tuple(snapshots), tuple(logs), tuple(members))
    path = plan(holdings, ToEnd(), _Timeless(), history=history, believe=True)
    return path if isinstance(path, RestorePath) else None


def _end_unreachable(refused: RestoreRefused) -> tuple[Finding, ...]:
    reachable = "; ".join(str(interval) for interval in refused.reachable)
    what = f"its end cannot be restored: {refused.what}; what can: {reachable}"
    return (Finding(code="end-unreachable", severity=Severity.DAMAGE, where="backup", what=what),)


def _lacks_logs(snapshot: ArchivedSnapshot, logs: Sequence[ArchivedLog]) -> bool:
    """Whether it came over HTTP, changed while it was written, and no log is there to make it exact."""
    end = snapshot.fuzzy_end or snapshot.zxid
    held = any(log.history == snapshot.history and log.last >= end for log in logs)
    return snapshot.origin is FileOrigin.ADMIN and end > snapshot.zxid and not held
