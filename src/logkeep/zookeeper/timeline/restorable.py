"""Can this be restored? Asked of the planner that restores use, over exactly what a backup will hold, before it does.

Pure. A backup from which nothing can be restored is none; one whose end cannot be reached says so.
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
    """Which moments transactions belong to is of no interest here."""

    def time_of(self, log: ArchivedLog, zxid: int) -> int | None:
        return None

    def first_later(self, log: ArchivedLog, first: int, last: int, time_ms: int) -> tuple[int, int] | None:
        return None


@dataclass(frozen=True)
class Restorable:
    findings: tuple[Finding, ...]
    believed: frozenset[tuple[int, int]]
    """Ends of epochs, as last and first transaction, that a majority agrees on or that digests will prove."""


def planned(
    members: Sequence[Member],
    snapshots: Sequence[ArchivedSnapshot],
    logs: Sequence[ArchivedLog],
    history: str,
    subject: str,
) -> Restorable:
    """Raises BackupFailed where no point in time can be restored; a snapshot over HTTP may wait for its logs."""
    voters = max((m.voters for m in members if m.voters is not None), default=None)
    whole = tuple(each for each in snapshots if not _waits(each, logs))
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
    believed = frozenset((b.before, b.after) for b in borders if b.standing in good)
    return Restorable(_told(path) if isinstance(path, RestoreRefused) else (), believed)


def end_of(
    members: Sequence[Member], snapshots: Sequence[ArchivedSnapshot], logs: Sequence[ArchivedLog], history: str
) -> RestorePath | None:
    """How the last transaction is reached, if it can be; ends of epochs are believed."""
    holdings = Holdings(tuple(snapshots), tuple(logs), tuple(members))
    path = plan(holdings, ToEnd(), _Timeless(), history=history, believe=True)
    return path if isinstance(path, RestorePath) else None


def _told(refused: RestoreRefused) -> tuple[Finding, ...]:
    reachable = "; ".join(str(interval) for interval in refused.reachable)
    what = f"its end cannot be restored: {refused.what}; what can: {reachable}"
    return (Finding(code="end-unreachable", severity=Severity.DAMAGE, where="backup", what=what),)


def _waits(snapshot: ArchivedSnapshot, logs: Sequence[ArchivedLog]) -> bool:
    """Whether it came over HTTP, was written to meanwhile, and no log is here that would make it exact."""
    end = snapshot.fuzzy_end or snapshot.zxid
    held = any(log.history == snapshot.history and log.last >= end for log in logs)
    return snapshot.origin is FileOrigin.ADMIN and end > snapshot.zxid and not held
