"""Verify a bundle and store the verdict in it.

The verdict is the field `validation` of `backup_info.json`, replaced as a whole; `logs/verify.log` gets a line per run.
For a bundle that cannot be written to (a read-only copy) the answer is the same, with a warning.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn

from logkeep.cli.zkbackup.command import CommandRun
from logkeep.cli.zkbackup.options import VALIDATION_TIMEOUT
from logkeep.cli.zkbackup.verification.structure import check_structure, find_dropped
from logkeep.cli.zkbackup.verification.verdict import store_verdict
from logkeep.errors import VerificationFailed
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
from logkeep.zookeeper.verify.verdict import JudgedBackup, judge, with_deeper_verdict


def check_bundle(
    view: BundleView,
    level: Level,
    run: CommandRun,
    *,
    boot: Boot | None = None,
    scratch: Path | None = None,
    repaired: int = 0,
    changed: bool = False,
) -> JudgedBackup:
    """Verify, and store the verdict. `repaired`: number of files that were just repaired. `changed`: a repair changed
    the backup, so earlier verdicts no longer apply."""
    with at_most(run[VALIDATION_TIMEOUT]), _progress(run, view, "verify") as progress:
        known = [*check_structure(view), *find_dropped(view)]
        verified = verify(view, level, known=known, boot=boot, scratch=scratch, progress=progress)
    files = view.info.validation.repaired_files + repaired
    dropped = sum(note.kind == DROPPED for note in repair_notes(view.path))
    notes = bool(repair_notes(view.path))
    missing = list(missing_when_taken(view.info.findings, verified, view.members, repaired=notes))
    checked = judge(verified, end=end_of(view), where=view.name, repaired_files=files, dropped=dropped, missing=missing)
    before = store_verdict(view, checked, run.clock(), replace=changed)
    return checked if before is None else with_deeper_verdict(checked, before, view.name)


def end_of(view: BundleView) -> int:
    """The last transaction that the backup had, including those that a repair lost."""
    lost = [span.zxids[1] for note in repair_notes(view.path) for span in note.lost]
    return max([view.info.backup_zxid.decimal, *(log.last for log in view.logs), *lost])


def usable_holdings(view: BundleView, run: CommandRun, *, verify: bool) -> Holdings:
    """The files that a restore may use, without the damaged ones. Raises Damaged where the document itself was changed;
    without `verify` that is a warning."""
    if verify:
        view.require_intact()
    elif not view.intact:
        run.warn(f"{layout.METADATA}/{layout.INFO}: {CHANGED}")
    objects = check_files(view)
    if verify:
        with at_most(run[VALIDATION_TIMEOUT]), _progress(run, view, "verify") as progress:
            objects = check_data(view, objects, progress)
    for seen in objects.seen:
        run.warn(f"{seen.finding.where}: {seen.finding.what}")
    return survey(view, without=objects.unusable)


@contextmanager
def _progress(run: CommandRun, view: BundleView, label: str) -> Iterator[Progress]:
    """A progress bar for work that reports bytes."""
    sink, total = run.progress(), sum(s.size_bytes for s in view.snapshots) + sum(log.size_bytes for log in view.logs)
    sink.start(label, total, 1)
    try:
        yield _Bytes(sink)
        sink.update(total, 1, 0)
    finally:
        sink.finish()


class _Bytes:
    def __init__(self, sink: ProgressSink) -> None:
        self._sink, self._done = sink, 0

    def __call__(self, more_bytes: int) -> None:
        self._done += more_bytes
        self._sink.update(self._done, 0, 0)


@contextmanager
def at_most(seconds: int | None) -> Iterator[None]:
    """Limit the time of the block, by an alarm signal. Raises VerificationFailed in the main thread."""
    if seconds is None:
        yield
        return

    def over(_signal: int, _frame: FrameType | None) -> NoReturn:
        raise VerificationFailed(
            f"the verification was not finished within {seconds} s",
            remedy="raise advanced.validation_timeout, or remove it for no limit",
        )

    earlier = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, earlier)
