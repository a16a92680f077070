"""`logkeep zeebe verify`: whether a backup that Zeebe stored can be restored, and is consistent."""

from collections.abc import Sequence

import msgspec

from logkeep.checkpoint.zeebe.cut import CutResult
from logkeep.checkpoint.zeebe.inventory import find_backup
from logkeep.checkpoint.zeebe.segment_task import CheckedSegment
from logkeep.checkpoint.zeebe.verify import LABEL, VerifiedBackup, VerifiedCopy, expected_bytes, verify_backup
from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle, plural, size
from logkeep.cli.verbs.restore_text import finding_lines
from logkeep.cli.verbs.zeebe.declarations import VERIFY
from logkeep.cli.verbs.zeebe.zeebe_store import opened_zeebe_store
from logkeep.cli.wiring import chosen_engine, use_directories
from logkeep.config.options import ALL, ZEEBE_STORE
from logkeep.model.findings import Finding, Severity
from logkeep.store.access import local_root


class VerifiedZeebeCopy(msgspec.Struct, frozen=True, kw_only=True):
    partition: int
    node: int
    checkpoint_position: int
    snapshot: str | None
    segments: int
    records: int
    used_bytes: int
    """Of the log, up to its last frame."""
    stored_bytes: int
    good: bool


class ZeebeVerifyReport(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    id: int
    state: str
    """As Zeebe reports it."""
    verdict: str
    """`good` or `damaged`."""
    partitions: int
    copies: tuple[VerifiedZeebeCopy, ...]
    cut: CutResult
    findings: tuple[Finding, ...]
    all: bool


def verify_text(report: ZeebeVerifyReport, look: TerminalStyle) -> str:
    state = look.state("OK" if report.verdict == "good" else "FAIL")
    records, used = sum(each.records for each in report.copies), sum(each.used_bytes for each in report.copies)
    copies = (
        f"{plural(report.partitions, 'partition')}, {plural(len(report.copies), 'completed copy', 'completed copies')}"
    )
    stored = sum(each.stored_bytes for each in report.copies)
    return "\n".join(
        [
            look.line(f"{state}  backup {report.id} of Zeebe: {report.verdict} (Zeebe says {report.state})"),
            look.text(f"{copies} · {plural(records, 'record')} · {size(used)} used of {size(stored)}"),
            look.text(_cut_line(report.cut)),
            *finding_lines(report.findings, look, every=report.all),
        ]
    )


def _cut_line(cut: CutResult) -> str:
    unchecked = sum(each.commands for each in cut.unchecked)
    return (
        f"cut: {plural(cut.proven, 'command')} of other partitions proven · {plural(cut.orphans, 'orphan')} · "
        f"{cut.inconclusive} inconclusive · {unchecked} unchecked"
    )


def exit_code(findings: Sequence[Finding]) -> int:
    """10 for damage, 2 for warnings. Notes explain only."""
    severities = {each.severity for each in findings}
    return 10 if Severity.DAMAGE in severities else 2 if Severity.WARNING in severities else 0


@verb(VERIFY, report=ZeebeVerifyReport, text=verify_text, exit_code=lambda report: exit_code(report.findings))
def verify(run: Run, stored: str) -> ZeebeVerifyReport:
    store = opened_zeebe_store(run)
    if (root := local_root(run[ZEEBE_STORE] or "")) is not None:
        use_directories(run, root)
    found = find_backup(store, stored)
    result = verify_backup(store, found, chosen_engine(run, expected_bytes(found), work=LABEL))
    return verify_report(store.url, result, every=run[ALL])


def verify_report(url: str, result: VerifiedBackup, *, every: bool) -> ZeebeVerifyReport:
    """The report of a verified backup."""
    return ZeebeVerifyReport(
        url=url,
        id=result.backup.checkpoint_id,
        state=result.backup.state,
        verdict="damaged" if exit_code(result.findings) == 10 else "good",
        partitions=result.backup.partitions,
        copies=tuple(map(_copy, result.copies)),
        cut=result.cut,
        findings=tuple(result.findings),
        all=every,
    )


def _copy(each: VerifiedCopy) -> VerifiedZeebeCopy:
    segments: Sequence[CheckedSegment] = [segment for segment in each.segments if segment.used]
    return VerifiedZeebeCopy(
        partition=each.copy.place.partition,
        node=each.copy.place.node,
        checkpoint_position=each.manifest.checkpoint_position,
        snapshot=each.manifest.snapshot_id or None,
        segments=len(segments),
        records=sum(segment.records for segment in segments),
        used_bytes=sum(segment.used_bytes for segment in segments),
        stored_bytes=each.copy.stored_bytes,
        good=each.good,
    )
