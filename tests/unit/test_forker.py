"""A command of the forker is a process as `python -m` starts it: streams, environment, signals and exit codes."""

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.cli.forker import ForkedProcess, command_script, run
from tests.support.cli.processes import REAL, TRIAL, clean_environment

_PROBE = "tests.unit.forker_probe"


def _probed(home: Path, true_start: bool, *words: str, **extra: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", _PROBE, *words]
    environment = clean_environment(home, **extra)
    return run(command, env=environment, cwd=home, timeout=60, true_start=true_start, input="first\nsecond\n")


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
def test_a_fork_finds_what_a_true_start_finds(tmp_path: Path, zone: str) -> None:
    before = os.umask(0o027)
    try:
        forked, true = (_probed(tmp_path, how, "ü", "a b", TZ=zone, OWN="x=y\nz") for how in (False, True))
    finally:
        os.umask(before)
    assert forked.stdout.splitlines() == true.stdout.splitlines()
    assert (forked.stderr, forked.returncode) == (true.stderr, true.returncode)
    assert "first" in forked.stdout


@pytest.mark.parametrize(("words", "code"), [("exit 7", 7), ("exit text", 1), ("raise", 1), ("interrupt", -2)])
def test_exit_codes(tmp_path: Path, words: str, code: int) -> None:
    forked, true = (_probed(tmp_path, how, *words.split()) for how in (False, True))
    assert (forked.returncode, true.returncode) == (code, code)
    assert forked.stderr.splitlines()[-1:] == true.stderr.splitlines()[-1:]


def test_a_variable_that_python_reads_at_its_start_means_a_true_start(tmp_path: Path) -> None:
    done = _probed(tmp_path, False, PYTHONIOENCODING="latin-1")
    assert "iso8859-1" in done.stdout or "latin-1" in done.stdout


@pytest.mark.parametrize(("kind", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_signals_reach_it(tmp_path: Path, kind: int, code: int) -> None:
    environment = clean_environment(tmp_path)
    with ForkedProcess([*TRIAL, "wait"], env=environment, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "waiting\n"
        assert process.poll() is None
        process.send_signal(kind)
        assert process.wait(60) == code


def _script(directory: Path, module: str) -> str:
    path = directory / "command"
    path.write_text(command_script(module))
    path.chmod(stat.S_IRWXU)
    return str(path)


def test_a_script_passes_on_arguments_streams_and_the_exit_code(tmp_path: Path) -> None:
    script = _script(tmp_path, _PROBE)
    environment = {name: value for name, value in clean_environment(tmp_path).items() if not name.startswith("PYTHON")}
    done = subprocess.run([script, "exit", "9"], env=environment, input=b"one\n", capture_output=True, check=False)
    assert done.returncode == 9
    assert subprocess.run([script, "interrupt"], env=environment, stderr=-3, check=False).returncode == -2


@pytest.mark.parametrize(("kind", "code"), [("TERM", 143), ("INT", 143), ("KILL", 128 + 9)])
def test_a_background_job_of_a_script(tmp_path: Path, kind: str, code: int) -> None:
    """The shell lets it ignore Ctrl-C, as any background job; SIGKILL of the script ends the command too."""
    script = _script(tmp_path, TRIAL[-1])
    last = "kill -TERM $!;" if kind == "INT" else ""
    text = f"{script} wait 2>told & until grep -q waiting told; do sleep 0.02; done; kill -{kind} $!; {last} wait $!"
    environment = {name: value for name, value in clean_environment(tmp_path).items() if not name.startswith("PYTHON")}
    done = subprocess.run(["bash", "-c", text], env=environment, cwd=tmp_path, stderr=subprocess.DEVNULL, check=False)
    assert done.returncode == code
    deadline = time.monotonic() + 30
    while _waits(tmp_path):
        assert time.monotonic() < deadline, "the command outlives its script"
        time.sleep(0.02)


def _waits(directory: Path) -> bool:
    """Whether a process has this working directory."""
    found = []
    for process in Path("/proc").glob("[0-9]*/cwd"):
        try:
            found.append(process.readlink())
        except OSError:
            continue
    return directory in found


def test_the_programs_start_truly() -> None:
    """Everything else runs from forks: this is what an installed command does first."""
    for module, name in ((REAL[-1], "logkeep"), ("logkeep.cli.zkbackup", "zkbackup")):
        command = [sys.executable, "-m", module, "--version"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stdout.startswith(f"{name} ")
