"""A bundle verified: how good it is, in a word, a number and findings; and the verdict stored where lists read it.

The verdict stands in the `validation` of `backup_info.json`, replaced as a whole, and a line of `logs/verify.log` tells
of each run. Where the bundle cannot be written to (a read-only copy), the answer is the same and a warning says so.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from logkeep.cli.zkbackup.frame import Run
from logkeep.cli.zkbackup.limit import at_most
from logkeep.cli.zkbackup.option import ZkOption
from logkeep.cli.zkbackup.structure import structure_seen
from logkeep.cli.zkbackup.verdict import store_verdict
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.model.findings import Finding, Severity
from logkeep.model.work import Progress, ProgressSink
from logkeep.zookeeper.boot import Boot
from logkeep.zookeeper.bundle.rewriting import document_of
from logkeep.zookeeper.bundle.view import BundleView
from logkeep.zookeeper.coverage import Holdings
from logkeep.zookeeper.findings import Class, Seen
from logkeep.zookeeper.plan import TAIL_UNPROVEN
from logkeep.zookeeper.score import Condition, condition, quality
from logkeep.zookeeper.survey import survey
from logkeep.zookeeper.verify import Level, Verified, verify
from logkeep.zookeeper.verify_objects import check_data, check_files


@dataclass(frozen=True)
class Checked:
    verified: Verified
    repaired_files: int
    """By the backup itself, or by --fix."""
    end: int
    """The last transaction that the backup had when it was taken."""

    @property
    def level(self) -> str:
        return self.verified.level.value

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(seen.finding for seen in self.verified.seen)

    @property
    def restorable(self) -> bool:
        """The end that was taken, not one that is left when damaged files are not counted."""
        return self.verified.restorable and (self.verified.end or 0) >= self.end

    @property
    def condition(self) -> Condition:
        found = self.verified
        return condition(
            restorable=self.restorable, repaired_files=self.repaired_files, old_hole=found.old_hole,
            damaged_files=found.damaged_files,
        )  # fmt: skip

    @property
    def unproven_end(self) -> bool:
        """No server said that the last transactions were committed."""
        return TAIL_UNPROVEN in self.verified.labels

    @property
    def score(self) -> int:
        found = self.verified
        return quality(restorable=self.restorable, repaired_files=self.repaired_files, old_hole=found.old_hole)

    @property
    def exit_code(self) -> int:
        """10: something is damaged or lost; 2: worth a look."""
        severities = {finding.severity for finding in self.findings}
        if Severity.DAMAGE in severities or not self.restorable:
            return 10
        return 2 if Severity.WARNING in severities else 0

    def new_to(self, known: Sequence[Finding]) -> list[Finding]:
        """What nobody has told yet."""
        told = {(finding.code, finding.where) for finding in known}
        return [finding for finding in self.findings if (finding.code, finding.where) not in told]


def check_bundle(
    view: BundleView,
    level: Level,
    run: Run,
    timeout: ZkOption[int | None],
    *,
    boot: Boot | None = None,
    scratch: Path | None = None,
    repaired: int = 0,
) -> Checked:
    """Verify, and store the verdict. `repaired`: files that were just repaired."""
    with at_most(run[timeout]), _shown(run, view, "verify") as progress:
        verified = verify(view, level, known=structure_seen(view), boot=boot, scratch=scratch, progress=progress)
    wanted = end_of(view)
    verified = replace(verified, seen=(*verified.seen, *_end_missing(view, verified, wanted)))
    checked = Checked(verified, view.info.validation.repaired_files + repaired, wanted)
    store_verdict(view, checked, run.clock())
    return checked


def end_of(view: BundleView) -> int:
    """The last transaction that the backup had, also one that a repair could not bring back."""
    lost = [int(each["to"], 16) for repair in document_of(view.path).get("repairs", []) for each in repair["lost"]]
    return max([view.info.backup_zxid.decimal, *(log.last for log in view.logs), *lost])


def _end_missing(view: BundleView, verified: Verified, wanted: int) -> Iterator[Seen]:
    """Where every file is whole and the end is in none of them, only what the document says of the backup tells it."""
    if verified.restorable and not verified.failed and (verified.end or 0) < wanted:
        yield Seen(
            kind=Class.END_UNREACHABLE,
            severity=Severity.DAMAGE,
            where=view.name,
            what=f"it was taken up to {hex_zxid(wanted)}, and no file holds what leads there",
            remedy="bring the directory back from a copy, or take a new backup",
            zxid=verified.end,
        )


def usable_holdings(view: BundleView, run: Run, *, verify: bool, timeout: ZkOption[int | None]) -> Holdings:
    """What a restore may be planned with: without every file that is not what was kept."""
    objects = check_files(view)
    if verify:
        with at_most(run[timeout]), _shown(run, view, "verify") as progress:
            objects = check_data(view, objects, progress)
    for seen in objects.seen:
        run.console.warn(f"{seen.finding.where}: {seen.finding.what}")
    return survey(view, without=objects.unusable)


@contextmanager
def _shown(run: Run, view: BundleView, label: str) -> Iterator[Progress]:
    """Progress for work that tells bytes."""
    sink, total = run.progress(), _size_of(view)
    sink.start(label, total, 1)
    try:
        yield _Bytes(sink)
        sink.update(total, 1, 0)
    finally:
        sink.finish()


def _size_of(view: BundleView) -> int:
    return sum(s.size_bytes for s in view.snapshots) + sum(log.size_bytes for log in view.logs)


class _Bytes:
    def __init__(self, sink: ProgressSink) -> None:
        self._sink, self._done = sink, 0

    def __call__(self, more_bytes: int) -> None:
        self._done += more_bytes
        self._sink.update(self._done, 0, 0)
