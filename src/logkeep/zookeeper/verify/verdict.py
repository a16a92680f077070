"""The verdict on a backup after a verification: condition, score and exit code, for bundles and repositories. Pure.

Transactions that are missing before the newest restorable interval make a backup partial, not damaged; the exit code of
a verification still reports them. A backup whose end cannot be restored is damaged, even if all its files are
undamaged; so is one whose own document is not what was written.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.model.findings import Finding, Severity
from logkeep.zookeeper.model.condition import Condition, condition, quality
from logkeep.zookeeper.model.findings import Class, FileFinding
from logkeep.zookeeper.timeline.plan import TAIL_UNPROVEN
from logkeep.zookeeper.verify.run import VerifiedFiles


@dataclass(frozen=True)
class DeeperVerdict:
    """Result of an earlier verification at a deeper level, which a shallower one does not replace."""

    condition: Condition
    score: int
    level: str


_REFUSED = (Class.BOOT_FAILED, Class.BOOT_DIFFERS, Class.END_UNREACHABLE)
"""A real server does not start on it or has another tree, or its end was never in it: do not rely on it."""


@dataclass(frozen=True)
class JudgedBackup:
    """Made by `judge`."""

    verified: VerifiedFiles
    repaired_files: int
    """By the backup itself, or by a repair."""
    end: int
    """The last transaction that the backup had when it was taken."""
    dropped: int = 0
    """Damaged files without another copy that the backup no longer lists."""
    deeper: DeeperVerdict | None = None

    @property
    def level(self) -> str:
        return self.verified.level.value

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(seen.finding for seen in self.verified.seen)

    @property
    def restorable(self) -> bool:
        """Whether its original end can be restored, not the one that is left without damaged files."""
        found = self.verified
        if self.deeper is not None and self.deeper.condition is Condition.DAMAGED:
            return False
        refused = any(seen.kind in _REFUSED for seen in found.seen)
        return found.restorable and not found.document_changed and not refused and (found.end or 0) >= self.end

    @property
    def condition(self) -> Condition:
        if self.deeper is not None:
            return self.deeper.condition
        return condition(
            restorable=self.restorable, repaired_files=self.repaired_files, old_hole=self.verified.old_hole,
            damaged_files=self._wrong,
        )  # fmt: skip

    @property
    def damaged_files(self) -> int:
        """Including files that the backup no longer lists."""
        return self.verified.damaged_files + self.dropped

    @property
    def _wrong(self) -> int:
        """Number of problems: damage outside of files counts too."""
        return max(self.damaged_files, int(self.verified.failed))

    @property
    def unrecoverable_files(self) -> int:
        """Without files whose content is undamaged."""
        return self.damaged_files - self.verified.unsealed_files

    @property
    def unproven_end(self) -> bool:
        """No server confirmed the last transactions as committed."""
        return TAIL_UNPROVEN in self.verified.labels

    @property
    def score(self) -> int:
        if self.deeper is not None:
            return self.deeper.score
        return quality(
            restorable=self.restorable, repaired_files=self.repaired_files, old_hole=self.verified.old_hole,
            damaged_files=self._wrong,
        )  # fmt: skip

    @property
    def exit_code(self) -> int:
        """10: something is damaged or lost; 2: there are warnings."""
        severities = {finding.severity for finding in self.findings}
        if Severity.DAMAGE in severities or self.verified.lacks or not self.restorable:
            return 10
        return 2 if Severity.WARNING in severities else 0

    def new_to(self, known: Sequence[Finding]) -> list[Finding]:
        """Findings that are not among the known ones."""
        old = {(finding.code, finding.where) for finding in known}
        return [finding for finding in self.findings if (finding.code, finding.where) not in old]


def judge(
    verified: VerifiedFiles,
    *,
    end: int,
    where: str,
    repaired_files: int = 0,
    dropped: int = 0,
    missing: Sequence[FileFinding] = (),
) -> JudgedBackup:
    """`end`: the last transaction of the backup when it was taken. `missing`: see `recorded_losses`."""
    seen = (*verified.seen, *missing, *_end_missing(verified, end, where))
    found = replace(verified, seen=seen)
    return JudgedBackup(replace(found, old_hole=verified.old_hole or found.lacks), repaired_files, end, dropped)


def with_deeper_verdict(judged: JudgedBackup, deeper: DeeperVerdict, where: str) -> JudgedBackup:
    """The earlier result still applies, and is reported together with the new findings."""
    earlier = FileFinding(
        kind=Class.DAMAGED_BEFORE,
        severity=Severity.DAMAGE,
        where=where,
        what=f"a verification at level {deeper.level} found damage before; level {judged.level} checks less",
        remedy=f"verify it at level {deeper.level} again, or with --fix",
    )
    seen = (*judged.verified.seen, earlier)
    return replace(judged, verified=replace(judged.verified, seen=seen), deeper=deeper)


def _end_missing(verified: VerifiedFiles, wanted: int, where: str) -> Iterator[FileFinding]:
    """If every file is undamaged and none has the end, only the backup's own record shows that it is missing."""
    if verified.restorable and not verified.failed and (verified.end or 0) < wanted:
        yield FileFinding(
            kind=Class.END_UNREACHABLE,
            severity=Severity.DAMAGE,
            where=where,
            what=f"it was taken up to {hex_zxid(wanted)}, and no file contains its end",
            remedy="restore what is missing from a copy, or take a new backup",
            zxid=verified.end,
        )
