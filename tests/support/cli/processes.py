"""Calling the command line in tests: as a process of its own, in an environment without the developer's settings."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.support.cli import forker

ROOT = Path(__file__).parents[3]
REAL = (sys.executable, "-m", "logkeep.cli")
TRIAL = (sys.executable, "-m", "tests.support.cli.trial_verbs")
"""The same entry point with the verbs of `trial_verbs`."""
_PATIENCE_S = 300
"""It only ends what hangs: a first call may compile kernels, start Spark or wait for a quota."""


def clean_environment(home: Path, **extra: str) -> dict[str, str]:
    """No LOGKEEP_ variables, an empty home, and the code under test on the path."""
    kept = {
        name: os.environ[name]
        for name in ("PATH", "PYTHONPYCACHEPREFIX", "COVERAGE_PROCESS_CONFIG")
        if name in os.environ
    }
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return {**kept, "PYTHONPATH": path, "HOME": str(home), "LANG": "C.UTF-8", **extra}


def logkeep(
    *arguments: str,
    home: Path,
    program: tuple[str, ...] = REAL,
    env: Mapping[str, str] | None = None,
    stdin: str | None = None,
    true_start: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run the command below `home`, which is also its working directory. It is a fork unless it needs a true start."""
    environment = clean_environment(home, **(env or {}))
    return forker.run(
        [*program, *arguments], env=environment, cwd=home, input=stdin, timeout=_PATIENCE_S, true_start=true_start
    )
