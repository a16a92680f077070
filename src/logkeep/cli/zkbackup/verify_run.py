"""A bundle verified: how good it is, in a word, a number and findings; and the verdict stored where lists read it.

The verdict stands in the `validation` of `backup_info.json`, replaced as a whole, and a line of `logs/verify.log` tells
of each run. Where the bundle cannot be written to (a read-only copy), the answer is the same and a warning says so.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from logkeep.cli.zkbackup.command import CommandRun
from logkeep.cli.zkbackup.deadline import at_most
from logkeep.cli.zkbackup.options import ZkOption
from logkeep.cli.zkbackup.structure import given_up_seen, structure_seen
from logkeep.cli.zkbackup.verdict import store_verdict
from logkeep.model.work import Progress, ProgressSink
from logkeep.zookeeper.bundle import layout
from logkeep.zookeeper.bundle.repair_notes import DROPPED, repair_notes
from logkeep.zookeeper.bundle.view import CHANGED, BundleView
from logkeep.zookeeper.timeline.holdings import Holdings
from logkeep.zookeeper.timeline.object_check import check_data, check_files
from logkeep.zookeeper.timeline.survey import survey
from logkeep.zookeeper.verify.boot import Boot
from logkeep.zookeeper.verify.recorded_losses import missing_when_taken
from logkeep.zookeeper.verify.run import Level, verify
from logkeep.zookeeper.verify.verdict import Judged, judge, with_standing


def check_bundle(
    view: BundleView,
    level: Level,
    run: CommandRun,
    timeout: ZkOption[int | None],
    *,
    boot: Boot | None = None,
    scratch: Path | None = None,
    repaired: int = 0,
    mended: bool = False,
) -> Judged:
    """Verify, and store the verdict. `repaired`: files that were just repaired. `mended`: something was, so that what
    was found before it is of another backup than this."""
    with at_most(run[timeout]), _shown(run, view, "verify") as progress:
        known = [*structure_seen(view), *given_up_seen(view)]
        verified = verify(view, level, known=known, boot=boot, scratch=scratch, progress=progress)
    files = view.info.validation.repaired_files + repaired
    given_up = sum(note.kind == DROPPED for note in repair_notes(view.path))
    notes = bool(repair_notes(view.path))
    missing = list(missing_when_taken(view.info.findings, verified, view.members, repaired=notes))
    checked = judge(
        verified, end=end_of(view), where=view.name, repaired_files=files, given_up=given_up, missing=missing
    )
    before = store_verdict(view, checked, run.clock(), replace=mended)
    return checked if before is None else with_standing(checked, before, view.name)


def end_of(view: BundleView) -> int:
    """The last transaction that the backup had, also one that a repair could not bring back."""
    lost = [span.zxids[1] for note in repair_notes(view.path) for span in note.lost]
    return max([view.info.backup_zxid.decimal, *(log.last for log in view.logs), *lost])


def usable_holdings(view: BundleView, run: CommandRun, *, verify: bool, timeout: ZkOption[int | None]) -> Holdings:
    """What a restore may be planned with: without every file that is not what was kept. Raises Damaged where the
    document itself is not what was written; without `verify` that is a warning."""
    if verify:
        view.require_intact()
    elif not view.intact:
        run.console.warn(f"{layout.METADATA}/{layout.INFO}: {CHANGED}")
    objects = check_files(view)
    if verify:
        with at_most(run[timeout]), _shown(run, view, "verify") as progress:
            objects = check_data(view, objects, progress)
    for seen in objects.seen:
        run.console.warn(f"{seen.finding.where}: {seen.finding.what}")
    return survey(view, without=objects.unusable)


@contextmanager
def _shown(run: CommandRun, view: BundleView, label: str) -> Iterator[Progress]:
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
