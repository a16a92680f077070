"""The last lines of a restore: what to type next, and nothing that leads nowhere."""

from datetime import UTC

import pytest

from logkeep.cli.terminal.text import TerminalStyle
from logkeep.cli.verbs.kafka.restore_report import KafkaRestoreReport, restore_code, restore_text
from logkeep.model.findings import Finding, Severity

LOOK = TerminalStyle(unicode=True, width=120, zone=UTC)
RESUME, ABORT = "logkeep kafka restore --resume 7", "logkeep kafka restore abort 7"


def _report(verdict: str, *codes: str, imported: bool = False) -> KafkaRestoreReport:
    findings = tuple(Finding(code=code, severity=Severity.WARNING, where="orders/0", what="why") for code in codes)
    return KafkaRestoreReport(
        source="prod", backup=3, restore=7, cluster_id="abc", offsets="preserve", why="", topics=("orders",),
        records=3, bytes=99, seconds=1.0, verdict=verdict, partitions=(), groups=(), group_names=(), refusals=(),
        findings=findings, imported=imported, dry_run=False,
    )  # fmt: skip


def _said(verdict: str, *codes: str) -> str:
    return restore_text(_report(verdict, *codes), LOOK)


@pytest.mark.parametrize("code", ["disk-failed", "denied", "refused", "archive-damaged", "proof-failed"])
def test_what_can_be_mended_goes_on(code: str) -> None:
    said = _said("failed", code)
    assert RESUME in said
    assert ABORT in said


@pytest.mark.parametrize("code", ["foreign-writer", "marker-misplaced", "topic-gone"])
def test_what_cannot_is_given_up(code: str) -> None:
    said = _said("failed", "disk-failed", code)
    assert RESUME not in said
    assert ABORT in said


def test_what_happened_after_the_end_is_no_failed_restore() -> None:
    said = _said("changed", "proof-failed")
    assert "had succeeded" in said
    assert "logkeep kafka groups restore 7" in said
    assert RESUME not in said
    assert ABORT not in said


@pytest.mark.parametrize("gap", ["gap", "known-gap"])
def test_a_gap_of_a_dataset_is_found_by_the_restore_and_that_of_a_backup_was_known(gap: str) -> None:
    assert restore_code(_report("proven", "torn-tail", gap, imported=True)) == 21
    assert restore_code(_report("proven", gap)) == 2
    assert restore_code(_report("proven", "torn-tail", imported=True)) == 2
    assert restore_code(_report("proven", imported=True)) == 0
    assert restore_code(_report("failed", gap, imported=True)) == 30
