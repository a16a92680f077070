"""Verification of a ZooKeeper backup at one of four levels, as a list of steps that add findings.

`files`: everything is there and has its size. `data`: every byte is what was written, every checksum and end mark
matches, and nothing is missing between the files. `replay`: all transactions are applied, every digest that a server
wrote is compared, and all snapshots lead to the same tree. `boot`: a real server is started on a copy, and its whole
tree is compared with the replayed one. Later steps leave out damaged objects, so the reported intervals are real.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from logkeep.errors import Interrupted, LogkeepError
from logkeep.model.findings import Severity
from logkeep.model.work import Progress
from logkeep.zookeeper.model.archived import ArchivedSnapshot, BackupView
from logkeep.zookeeper.model.findings import Class, FileFinding
from logkeep.zookeeper.timeline.history_check import history_findings
from logkeep.zookeeper.timeline.holdings import Holdings
from logkeep.zookeeper.timeline.lost_moments import moments_lost
from logkeep.zookeeper.timeline.object_check import ObjectChecks, check_data, check_files
from logkeep.zookeeper.timeline.plan import Interval, RestorePath, ToEnd, TransactionTimes, plan, reachable
from logkeep.zookeeper.timeline.reachable import reaches_of
from logkeep.zookeeper.timeline.survey import LogTimes, survey
from logkeep.zookeeper.timeline.timeline import line_of
from logkeep.zookeeper.verify.boot import Boot, boot_findings, not_booted
from logkeep.zookeeper.verify.replay import ReplayChecks, check_replay

_OF_FILES = frozenset(
    {
        Class.OBJECT_MISSING, Class.SIZE_MISMATCH, Class.HASH_MISMATCH, Class.SEAL_BROKEN, Class.FACTS_DIFFER,
        Class.SNAPSHOT_DAMAGED, Class.LOG_DAMAGED, Class.LOG_HEADER, Class.TORN_LOG,
    }
)  # fmt: skip


_OLD_HOLES = frozenset({Class.LOST_TRANSACTIONS, Class.LOST_MOMENTS})
ReadObjects = Callable[[BackupView, ObjectChecks, Progress], ObjectChecks]


class Level(StrEnum):
    FILES = "files"
    DATA = "data"
    REPLAY = "replay"
    BOOT = "boot"

    def covers(self, other: "Level") -> bool:
        order = list(Level)
        return order.index(self) >= order.index(other)


@dataclass(frozen=True, kw_only=True)
class VerifiedFiles:
    level: Level
    seen: tuple[FileFinding, ...]
    restorable: bool
    """The end of the newest history can be restored, as far as this level checks it."""
    reachable: dict[str, tuple[Interval, ...]] = field(default_factory=dict)
    """Per history."""
    old_hole: bool = False
    """Transactions, or snapshots needed to restore them, are missing before the newest restorable interval."""
    damaged_files: int = 0
    unsealed_files: int = 0
    """Of those: files whose content is undamaged."""
    objects: int = 0
    bytes: int = 0
    transactions: int = 0
    digests_compared: int = 0
    end: int | None = None
    labels: tuple[str, ...] = ()
    """What weakens the proof of the end, as text for users."""

    @property
    def reads_data(self) -> bool:
        """Whether bytes were read, and not only names and sizes."""
        return self.level.covers(Level.DATA)

    @property
    def failed(self) -> bool:
        return any(each.severity is Severity.DAMAGE for each in self.seen)

    @property
    def lacks(self) -> bool:
        """Transactions are gone, or points in time that could be restored."""
        return any(each.kind in _OLD_HOLES for each in self.seen)

    @property
    def document_changed(self) -> bool:
        """The backup's own document is not what was written: nothing in it can be relied on."""
        return any(each.kind is Class.DOCUMENT_CHANGED for each in self.seen)

    @property
    def lost(self) -> tuple[tuple[int, int], ...]:
        """First and last numbers of transactions that are gone, each range once."""
        return tuple(sorted({each.lost for each in self.seen if each.lost is not None}))


def verify(
    view: BackupView,
    level: Level,
    *,
    voters: int | None = None,
    known: Sequence[FileFinding] = (),
    boot: Boot | None = None,
    scratch: Path | None = None,
    progress: Progress = lambda _: None,
    objects: ObjectChecks | None = None,
    read: ReadObjects = check_data,
) -> VerifiedFiles:
    """`known`: findings from when the view was made. `boot` and `scratch`: how to start a server, and where.

    Raises the error that kept a server from starting, unless damage was found before: that is reported instead, and the
    level is then the one that was reached.

    `objects`: result of `check_files`, if already known. `read`: how objects are read.
    """
    objects = check_files(view) if objects is None else objects
    if level.covers(Level.DATA):
        objects = read(view, objects, progress)
    holdings = survey(view, voters=voters, without=objects.unusable)
    times = LogTimes(view)
    seen = [*known, *objects.seen]
    if not level.covers(Level.DATA):
        return _verified(level, seen, objects, holdings, times)
    seen += _unchecked(view)
    for history in holdings.histories:
        seen += history_findings(holdings, line_of(holdings, history), times)
    replayed = check_replay(view, holdings, times) if level.covers(Level.REPLAY) else ReplayChecks()
    seen += replayed.seen
    if level is Level.BOOT and boot is not None and scratch is not None:
        try:
            seen += boot_findings(view, replayed.holdings or holdings, times, boot, scratch)
        except Interrupted:
            raise
        except (LogkeepError, OSError) as error:
            if not any(_fails_verification(each) for each in seen):
                raise
            seen.append(not_booted(error))
            level = Level.REPLAY
    return _verified(level, seen, objects, replayed.holdings or holdings, times, replayed)


def _fails_verification(found: FileFinding) -> bool:
    return found.severity is Severity.DAMAGE or found.kind in _OLD_HOLES


def _unchecked(view: BackupView) -> Iterator[FileFinding]:
    """What cannot be checked with this backup at any level."""
    if len(view.members) == 1 and view.members[0].role != "standalone":
        yield FileFinding(
            kind=Class.AGREEMENT_UNCHECKED,
            severity=Severity.NOTE,
            where=view.members[0].name,
            what="only one member was backed up: whether others have the same transactions was not checked",
            remedy="back up more members to check it",
        )


def _verified(
    level: Level,
    seen: Sequence[FileFinding],
    objects: ObjectChecks,
    holdings: Holdings,
    moments: TransactionTimes,
    replayed: ReplayChecks | None = None,
) -> VerifiedFiles:
    counted = replayed or ReplayChecks()
    end = plan(holdings, ToEnd(), moments)
    path = end if isinstance(end, RestorePath) else None
    lines = {history: line_of(holdings, history) for history in holdings.histories}
    return VerifiedFiles(
        level=level,
        seen=tuple(seen),
        restorable=path is not None and counted.end_proven,
        reachable={
            name: reachable(holdings, line, reaches_of(holdings, line), moments) for name, line in lines.items()
        },
        old_hole=any(each.kind in _OLD_HOLES for each in seen) or bool(moments_lost(holdings, _snapshots(objects))),
        damaged_files=len({each.where for each in seen if each.severity is Severity.DAMAGE and each.kind in _OF_FILES}),
        unsealed_files=sum(each.kind is Class.SEAL_BROKEN for each in seen),
        objects=objects.objects,
        bytes=objects.bytes,
        transactions=counted.transactions,
        digests_compared=counted.digests_compared,
        end=None if path is None else path.until,
        labels=() if path is None else path.labels,
    )


def _snapshots(objects: ObjectChecks) -> list[ArchivedSnapshot]:
    """Snapshots that cannot be used, each once."""
    return [kept for kept in dict.fromkeys(objects.unusable) if isinstance(kept, ArchivedSnapshot)]
