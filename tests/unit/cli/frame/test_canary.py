"""A secret, given in each allowed way, appears in nothing that anybody can see."""

import json
from pathlib import Path

import pytest

from tests.support.cli.processes import TRIAL, logkeep

CANARY = "kanarienvogel-4711"


@pytest.mark.parametrize("how", ("file", "command", "env"))
@pytest.mark.parametrize(
    ("then", "flags", "code"),
    (
        ("error", (), 20),
        ("error", ("--json",), 20),
        ("error", ("--log-file", "run.log", "-vv"), 20),
        ("crash", (), 1),
        ("crash", ("-vv",), 1),
        ("crash", ("--log-file", "run.log", "--log-format", "json"), 1),
        ("log", ("-v",), 0),
        ("log", ("--log-format", "json"), 0),
        ("library", ("--log-file", "run.log"), 0),
    ),
)
def test_no_way_out(tmp_path: Path, how: str, then: str, flags: tuple[str, ...], code: int) -> None:
    secret = tmp_path / "secret"
    secret.write_text(f"{CANARY}\n")
    secret.chmod(0o600)
    where = "TRIAL_SECRET" if how == "env" else str(secret)
    env = {"TRIAL_SECRET": CANARY} if how == "env" else {}
    done = logkeep("leak", how, where, then, *flags, home=tmp_path, program=TRIAL, env=env)
    secret.unlink()
    assert done.returncode == code
    if "--json" in flags:
        assert json.loads(done.stderr)["message"] == "login with *** failed: sasl.jaas.config=***"
    shown = done.stdout + done.stderr + "".join(_texts(tmp_path))
    assert "***" in shown
    assert CANARY not in shown


def _texts(directory: Path) -> list[str]:
    """All files that the run left: log, crash log, caches."""
    return [path.read_text(errors="replace") for path in directory.rglob("*") if path.is_file()]


@pytest.mark.parametrize("how", ("file", "command", "env"))
def test_not_in_the_process_list(tmp_path: Path, how: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text(CANARY)
    secret.chmod(0o600)
    where = "TRIAL_SECRET" if how == "env" else str(secret)
    done = logkeep(
        "leak", how, where, "cmdline", home=tmp_path, program=TRIAL, env={"TRIAL_SECRET": CANARY}, true_start=True
    )
    assert done.stdout == "False\n"


def test_crash_logs_are_private_and_named(tmp_path: Path) -> None:
    done = logkeep("leak", "env", "X", "crash", home=tmp_path, program=TRIAL, env={"X": CANARY})
    assert done.stderr.startswith("error: unexpected RuntimeError: boom ***\n  try: details in ")
    (crash,) = (tmp_path / ".cache" / "logkeep" / "crashes").iterdir()
    assert str(crash) in done.stderr
    assert crash.stat().st_mode & 0o777 == 0o600
    assert crash.parent.stat().st_mode & 0o777 == 0o700
    assert "Traceback" in crash.read_text()
    assert "Traceback" not in done.stderr


def test_a_crash_without_a_place_for_its_log(tmp_path: Path) -> None:
    env = {"X": CANARY, "LOGKEEP_CACHE_DIR": "/proc/none"}
    done = logkeep("leak", "env", "X", "crash", home=tmp_path, program=TRIAL, env=env)
    assert done.returncode == 1
    assert "a run with -vv" in done.stderr


def test_log_file_is_private(tmp_path: Path) -> None:
    logkeep("leak", "env", "X", "log", "--log-file", "run.log", home=tmp_path, program=TRIAL, env={"X": CANARY})
    log = tmp_path / "run.log"
    assert log.stat().st_mode & 0o777 == 0o600
    assert "logged *** nested={'list': ['***']} value=*** [logkeep.trial]" in log.read_text()
