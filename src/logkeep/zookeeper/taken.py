"""What a backup found missing when it was taken, as every later verification has to tell it. Pure.

Files that are whole do not tell that a server had more: its last transactions in no log, or no log at all, because
nobody named its directory. Only the backup's own findings do. Holes between logs are seen again by whoever reads the
logs, so these count only for a look that does not.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from logkeep.model.findings import Finding, Severity
from logkeep.zookeeper.findings import Class, Seen

_ENDS_EARLY: Final = "behind-the-server"
_WITHOUT_LOGS: Final = "no-log"
_HOLES: Final = frozenset({"hole", "lost-transactions"})
_WHEN_TAKEN: Final = "when it was taken: "


def missing_when_taken(findings: Sequence[Finding], *, reads_logs: bool, repaired: bool) -> Iterator[Seen]:
    """`repaired`: something was brought back since, maybe just that."""
    for finding in findings:
        if finding.code == _WITHOUT_LOGS:
            yield _seen(Class.END_UNREACHABLE, Severity.DAMAGE, finding)
        elif finding.code == _ENDS_EARLY or (finding.code in _HOLES and not reads_logs and not repaired):
            yield _seen(Class.LOST_TRANSACTIONS, Severity.WARNING, finding)


def _seen(kind: Class, severity: Severity, finding: Finding) -> Seen:
    return Seen(kind=kind, severity=severity, where=finding.where, what=_WHEN_TAKEN + finding.what)
