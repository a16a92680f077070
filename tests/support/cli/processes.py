"""Calling the command line in tests: as a real process, in an environment that holds nothing of the developer's own."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[3]
REAL = (sys.executable, "-m", "logkeep.cli")
TRIAL = (sys.executable, "-m", "tests.support.cli.trial_verbs")
"""The same entry point with the verbs of `trial_verbs`."""
_PATIENCE_S = 300
"""It only ends what hangs: a first call may compile kernels, start Spark or wait for a quota."""


def clean_environment(home: Path, **extra: str) -> dict[str, str]:
    """No LOGKEEP_ variables, an empty home, and the code under test on the path."""
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPYCACHEPREFIX") if name in os.environ}
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return {**kept, "PYTHONPATH": path, "HOME": str(home), "LANG": "C.UTF-8", **extra}


def logkeep(
    *arguments: str,
    home: Path,
    program: tuple[str, ...] = REAL,
    env: Mapping[str, str] | None = None,
    stdin: str | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run the command below `home`, which is also its working directory."""
    return subprocess.run(
        [*program, *arguments],
        env=clean_environment(home, **(env or {})),
        cwd=home,
        input=stdin,
        stdin=None if stdin is not None else subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
        check=False,
    )
