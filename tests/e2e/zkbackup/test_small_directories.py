"""`zkbackup` on a small directory: no compiler, and less memory than the 100 MB that it promises."""

import subprocess
import sys
from pathlib import Path

from tests.support.cli.processes import clean_environment
from tests.support.zookeeper.handmade_directories import MadeServer

MEMORY_KB = 100_000
_MEASURED = """
import atexit, re, runpy, sys

def report():
    peak = re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]
    print(peak, *(name for name in ("numba", "pyarrow") if name in sys.modules), file=sys.stderr)

atexit.register(report)
runpy.run_module("logkeep.cli.zkbackup", run_name="__main__", alter_sys=True)
"""


def _peak_kb(home: Path, *words: str, code: int) -> int:
    """Of a true start: a fork of a process that has loaded libraries says nothing."""
    command = [sys.executable, "-c", _MEASURED, *words]
    done = subprocess.run(
        command, cwd=home, env=clean_environment(home), capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == code, done.stderr
    peak, *heavy = done.stderr.splitlines()[-1].split()
    assert not heavy
    return int(peak)


def test_a_small_directory_needs_no_compiler_and_little_memory(tmp_path: Path) -> None:
    server = MadeServer(tmp_path / "zk")
    server.log(range(1, 1501), creating=True)
    server.snapshot(1500, nodes=range(1, 1501))
    assert sum(path.stat().st_size for path in server.log_dir.iterdir()) > 131_000
    places = f"--zk-data-dir={server.root / 'data'}", "--output-dir=out", "--backup-id=one", "--zk-host=127.0.0.1:1"
    assert _peak_kb(tmp_path, "backup", *places, code=2) < MEMORY_KB
    assert _peak_kb(tmp_path, "verify", "--backup-dir=out/one", code=0) < MEMORY_KB
    assert not (tmp_path / ".cache").exists()
