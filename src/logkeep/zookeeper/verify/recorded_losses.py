"""Losses that the backup recorded when it was taken, which every later verification must report again. Pure.

Undamaged files do not show that a server had more: last transactions that are in no log, or no log at all because its
directory was not given. Only the backup's own findings do. A verification sees most holes in the logs again, but not
those after the last archived record.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from logkeep.model.findings import Finding, Severity
from logkeep.zookeeper.model.archived import Member
from logkeep.zookeeper.model.findings import Class, FileFinding
from logkeep.zookeeper.verify.run import VerifiedFiles

ENDS_EARLY: Final = "behind-the-server"
"""The server had reported a later zxid than its files contain."""
_WITHOUT_LOGS: Final = "no-log"
_HOLES: Final = frozenset({"hole", "lost-transactions"})
_WHEN_TAKEN: Final = "when it was taken: "


def missing_when_taken(
    findings: Sequence[Finding], found: VerifiedFiles, members: Iterable[Member], *, repaired: bool
) -> Iterator[FileFinding]:
    """`found`: the current result. `repaired`: a repair has since restored something, perhaps exactly this.

    What one member lacks is not lost if others have everything that any server reported.
    """
    reported = [member.zxid for member in members if member.zxid is not None]
    whole = bool(reported) and found.end is not None and found.end >= max(reported)
    seen_again = any(seen.kind is Class.LOST_TRANSACTIONS for seen in found.seen)
    for finding in findings:
        ends_early = finding.code == ENDS_EARLY and not whole
        unseen = finding.code in _HOLES and not repaired and not seen_again
        if finding.code == _WITHOUT_LOGS and not whole:
            yield _recorded(Class.END_UNREACHABLE, Severity.DAMAGE, finding)
        elif ends_early or unseen:
            yield _recorded(Class.LOST_TRANSACTIONS, Severity.WARNING, finding)


def is_of_the_backup(finding: Finding) -> bool:
    """Whether it only repeats the backup's own findings."""
    return finding.what.startswith(_WHEN_TAKEN)


def lasting(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings that a verification of the files would not make again."""
    return tuple(finding for finding in findings if finding.code in _HOLES)


def _recorded(kind: Class, severity: Severity, finding: Finding) -> FileFinding:
    return FileFinding(kind=kind, severity=severity, where=finding.where, what=_WHEN_TAKEN + finding.what)
