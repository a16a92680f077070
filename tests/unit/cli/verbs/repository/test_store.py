"""`store probe`: the verdict in words and in the exit code, from hand-made reports; and once for real."""

import json
from pathlib import Path

import jsonschema
import pytest

from logkeep.cli.terminal.text import TerminalStyle
from logkeep.cli.verbs.repository.store import probe
from logkeep.errors import StoreUnreachable
from logkeep.model.time import random_token, utc_now
from logkeep.store.conformance.probe import ProbeCheck, ProbeReport, ProbeResult
from logkeep.store.conformance.probe import probe as run_probe
from logkeep.store.memory import MemoryStore
from tests.support.cli.processes import ROOT, logkeep
from tests.support.faults.plan import Fault
from tests.support.faults.store import FaultyStore

PASSED = ProbeCheck(slug="put-new", title="a name is given once", result=ProbeResult.PASSED)
WARNING = ProbeCheck(
    slug="transport", title="encrypted", result=ProbeResult.WARNING, what="plain http", remedy="use https"
)
FAILED = ProbeCheck(
    slug="race", title="one winner", result=ProbeResult.FAILED, what="2 winners", remedy="use another store"
)


def _report(*checks: ProbeCheck, commits_safe: bool = True, lease_safe: bool = True) -> ProbeReport:
    remedies = tuple(check.remedy for check in checks if check.remedy)
    return ProbeReport(
        url="s3://b/p", checks=checks, commits_safe=commits_safe, lease_safe=lease_safe, reasons=(), remedies=remedies
    )


@pytest.mark.parametrize(
    ("report", "code", "verdict"),
    (
        (_report(PASSED), 0, "OK    a repository is safe here"),
        (_report(PASSED, WARNING), 2, "OK    a repository is safe here\n  try: use https"),
        (_report(FAILED, lease_safe=False), 2, "WARN  backups are safe here, but two runs could work"),
        (_report(FAILED, commits_safe=False, lease_safe=False), 40, "FAIL  a repository here could lose backups"),
    ),
)
def test_verdicts(report: ProbeReport, code: int, verdict: str) -> None:
    assert probe.job.exit_code(report) == code
    assert code in probe.exits
    assert verdict in probe.job.text(report, TerminalStyle())


def test_text() -> None:
    text = probe.job.text(_report(PASSED, WARNING), TerminalStyle())
    assert text.splitlines()[:4] == ["s3://b/p", "", "OK    a name is given once", "WARN  encrypted: plain http"]


def test_a_directory_for_real(tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    done = logkeep("store", "probe", str(tmp_path / "repo"), "--json", home=tmp_path)
    assert done.returncode == 0
    schema = json.loads((ROOT / "docs" / "reference" / "schemas" / "store-probe.json").read_text())
    document = json.loads(done.stdout)
    jsonschema.validate(document, schema)
    assert document["commits_safe"] is True
    assert not [path for path in (tmp_path / "repo" / "probe").rglob("*") if path.is_file()]


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    done = logkeep("store", "probe", str(tmp_path / "none"), home=tmp_path)
    assert done.returncode == 41
    assert done.stdout == ""


def test_a_url_with_a_password_is_refused_without_repeating_it(tmp_path: Path) -> None:
    done = logkeep("store", "probe", "s3://user:hunter2hunter2@bucket/x", home=tmp_path)
    assert done.returncode == 40
    assert "hunter2" not in done.stdout + done.stderr


def test_a_store_that_refuses_connections_is_asked_once() -> None:
    """Every question is retried for a while, and what was not written needs no removal."""
    refused = StoreUnreachable("connection refused")
    refused.lasting = True
    faulty = FaultyStore(MemoryStore(), lambda _number, _operation, _name: Fault(before=refused))
    with pytest.raises(StoreUnreachable):
        run_probe(faulty, utc_now, random_token)
    assert len(faulty.calls) == 1
