"""What a backup found missing when it was taken, as every later verification has to tell it. Pure.

Files that are whole do not tell that a server had more: its last transactions in no log, or no log at all, because
nobody named its directory. Only the backup's own findings do. Most holes are seen again by whoever reads the logs, but
not those behind the last record that is kept.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from logkeep.model.findings import Finding, Severity
from logkeep.zookeeper.model.archived import Member
from logkeep.zookeeper.model.findings import Class, FileFinding
from logkeep.zookeeper.verify.run import VerifiedFiles

ENDS_EARLY: Final = "behind-the-server"
"""The server had said more than its files hold."""
_WITHOUT_LOGS: Final = "no-log"
_HOLES: Final = frozenset({"hole", "lost-transactions"})
_WHEN_TAKEN: Final = "when it was taken: "


def missing_when_taken(
    findings: Sequence[Finding], found: VerifiedFiles, members: Iterable[Member], *, repaired: bool
) -> Iterator[FileFinding]:
    """`found`: what was seen now. `repaired`: something was brought back since, maybe just that.

    What one member lacks is no loss where others hold all that any server had said.
    """
    said = [member.zxid for member in members if member.zxid is not None]
    whole = bool(said) and found.end is not None and found.end >= max(said)
    seen_again = any(seen.kind is Class.LOST_TRANSACTIONS for seen in found.seen)
    for finding in findings:
        ends_early = finding.code == ENDS_EARLY and not whole
        unseen = finding.code in _HOLES and not repaired and not seen_again
        if finding.code == _WITHOUT_LOGS and not whole:
            yield _seen(Class.END_UNREACHABLE, Severity.DAMAGE, finding)
        elif ends_early or unseen:
            yield _seen(Class.LOST_TRANSACTIONS, Severity.WARNING, finding)


def is_of_the_backup(finding: Finding) -> bool:
    """Whether it only says again what the backup's own findings say."""
    return finding.what.startswith(_WHEN_TAKEN)


def lasting(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Those that a copy of the files would not find again."""
    return tuple(finding for finding in findings if finding.code in _HOLES)


def _seen(kind: Class, severity: Severity, finding: Finding) -> FileFinding:
    return FileFinding(kind=kind, severity=severity, where=finding.where, what=_WHEN_TAKEN + finding.what)
