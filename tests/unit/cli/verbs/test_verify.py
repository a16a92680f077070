"""`logkeep verify` of a backup of ZooKeeper whose objects are all good, and that lacks transactions."""

import msgspec
import pytest

from logkeep.cli.terminal.text import TerminalStyle
from logkeep.cli.verbs.verify import _code, _text
from logkeep.model.findings import Finding, Severity
from logkeep.reports.verification import VerifyReport, ZooKeeperVerified
from logkeep.repository.backups.certificate import Certificate, RuleOutcome


def report(code: str) -> VerifyReport:
    finding = Finding(code=code, severity=Severity.WARNING, where="history 1", what="between 0x32 and 0x3d")
    return VerifyReport(
        source="zk", id=7, level="data", asked_level="data", sample="1/1", verdict="good", objects=3, objects_read=3,
        stored_bytes=9, findings=(finding,), also_damaged=(), stored=True,
        zookeeper=ZooKeeperVerified(
            restorable=True, condition="partial", quality=70, end="0x78", reachable=("0x64 to 0x78",), labels=(),
            transactions=0, digests_compared=0,
        ),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("code", "ends", "begins", "told"), [("lost-transactions", 10, "FAIL", True), ("window-open", 2, "OK", False)]
)
def test_what_is_missing_is_no_success(code: str, ends: int, begins: str, told: bool) -> None:
    text = _text(report(code), TerminalStyle())
    assert (_code(report(code)), text.split()[0].strip("[]")) == (ends, begins)
    assert ("transactions are missing" in text) == told


def test_a_rule_that_is_not_checkable_is_said_once() -> None:
    """It is in the table of the certificate, and a finding of the document too."""
    rule = RuleOutcome(rule="V9", title="logs continue their snapshots", outcome="unchecked", what="there are none")
    certificate = Certificate(application="shop", history=0, checkpoint=7, rules=(rule,), records=1)
    unchecked = Finding(
        code="cut-unchecked", severity=Severity.NOTE, where="p0", what="V9, logs continue their snapshots"
    )
    found = msgspec.structs.replace(
        report("window-open"), findings=(unchecked,), certificate=certificate, certificate_verdict="consistent"
    )
    assert _text(found, TerminalStyle()).count("logs continue their snapshots") == 1
