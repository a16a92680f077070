"""How good a backup is, from what a verification saw of it: one judgement, for bundles and for repositories. Pure.

Transactions that are missing before the newest interval that can be restored make a backup worse, and do not make it
damaged; who verifies it is told with an exit code all the same. One whose end is not the one that it was taken up to is
damaged, however whole its files are; so is one whose own document is not what was written.
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
    """What an earlier and deeper verification found, which a shallower one does not unsay."""

    condition: Condition
    score: int
    level: str


_REFUSED = (Class.BOOT_FAILED, Class.BOOT_DIFFERS, Class.END_UNREACHABLE)
"""A real server does not start on it, or shows another tree, or its end was never in it: nobody should rely on it."""


@dataclass(frozen=True)
class Judged:
    """Made by `judge`."""

    verified: VerifiedFiles
    repaired_files: int
    """By the backup itself, or by a repair."""
    end: int
    """The last transaction that the backup had when it was taken."""
    given_up: int = 0
    """Files that were damaged, that nobody else had, and that it names no more."""
    standing: DeeperVerdict | None = None

    @property
    def level(self) -> str:
        return self.verified.level.value

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(seen.finding for seen in self.verified.seen)

    @property
    def restorable(self) -> bool:
        """The end that was taken, not one that is left when damaged files are not counted."""
        found = self.verified
        if self.standing is not None and self.standing.condition is Condition.DAMAGED:
            return False
        refused = any(seen.kind in _REFUSED for seen in found.seen)
        return found.restorable and not found.document_changed and not refused and (found.end or 0) >= self.end

    @property
    def condition(self) -> Condition:
        if self.standing is not None:
            return self.standing.condition
        return condition(
            restorable=self.restorable, repaired_files=self.repaired_files, old_hole=self.verified.old_hole,
            damaged_files=self._wrong,
        )  # fmt: skip

    @property
    def damaged_files(self) -> int:
        """Those that are gone for it too."""
        return self.verified.damaged_files + self.given_up

    @property
    def _wrong(self) -> int:
        """How many things count against it: whatever is damaged is no valid backup, in a file or not."""
        return max(self.damaged_files, int(self.verified.failed))

    @property
    def unrecoverable_files(self) -> int:
        """Without those of which nothing but what they are stored in is damaged."""
        return self.damaged_files - self.verified.unsealed_files

    @property
    def unproven_end(self) -> bool:
        """No server said that the last transactions were committed."""
        return TAIL_UNPROVEN in self.verified.labels

    @property
    def score(self) -> int:
        if self.standing is not None:
            return self.standing.score
        return quality(
            restorable=self.restorable, repaired_files=self.repaired_files, old_hole=self.verified.old_hole,
            damaged_files=self._wrong,
        )  # fmt: skip

    @property
    def exit_code(self) -> int:
        """10: something is damaged or lost; 2: worth a look."""
        severities = {finding.severity for finding in self.findings}
        if Severity.DAMAGE in severities or self.verified.lacks or not self.restorable:
            return 10
        return 2 if Severity.WARNING in severities else 0

    def new_to(self, known: Sequence[Finding]) -> list[Finding]:
        """What nobody has told yet."""
        told = {(finding.code, finding.where) for finding in known}
        return [finding for finding in self.findings if (finding.code, finding.where) not in told]


def judge(
    verified: VerifiedFiles,
    *,
    end: int,
    where: str,
    repaired_files: int = 0,
    given_up: int = 0,
    missing: Sequence[FileFinding] = (),
) -> Judged:
    """`end`: the last transaction that the backup was taken up to. `missing`: see `taken`."""
    seen = (*verified.seen, *missing, *_end_missing(verified, end, where))
    found = replace(verified, seen=seen)
    return Judged(replace(found, old_hole=verified.old_hole or found.lacks), repaired_files, end, given_up)


def with_standing(judged: Judged, standing: DeeperVerdict, where: str) -> Judged:
    """What was found before goes for the backup still, and is told beside what was seen now."""
    told = FileFinding(
        kind=Class.DAMAGED_BEFORE,
        severity=Severity.DAMAGE,
        where=where,
        what=f"a verification at level {standing.level} found damage before; level {judged.level} looks less deep",
        remedy=f"verify it at level {standing.level} again, or with --fix",
    )
    seen = (*judged.verified.seen, told)
    return replace(judged, verified=replace(judged.verified, seen=seen), standing=standing)


def _end_missing(verified: VerifiedFiles, wanted: int, where: str) -> Iterator[FileFinding]:
    """Where every file is whole and the end is in none of them, only what the backup says of itself tells it."""
    if verified.restorable and not verified.failed and (verified.end or 0) < wanted:
        yield FileFinding(
            kind=Class.END_UNREACHABLE,
            severity=Severity.DAMAGE,
            where=where,
            what=f"it was taken up to {hex_zxid(wanted)}, and no file holds what leads there",
            remedy="bring what is missing back from a copy, or take a new backup",
            zxid=verified.end,
        )
