"""`python -m tests.second_try ARGUMENTS`: pytest, and a second run of the few tests that a busy machine made fail.

Four thousand tests share two cores with real servers. On a slow machine a test may fail because a server answered late.
Up to three such failures run again, alone. A test that fails twice fails; a test that passes then is listed as UNSTEADY
after the full report of its first failure, and must be fixed. There is no second run for a test of races, killed
processes, damage or the cut (one failure in a thousand is what these look for), for a test without a server (the load
does not disturb it), when a worker of pytest died, or when more tests failed. `LOGKEEP_STRICT=1` allows no second run.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest

AT_MOST = 3
_SERVED = ("tests/integration/", "tests/e2e/", "tests/docs/")
_ONE_FAILURE_IS_ENOUGH = (
    *("kill", "crash", "fault", "die", "race", "moving", "moves", "resume", "once", "same_time", "concurren"),
    *("signal", "interrupt", "ctrl_c", "abort", "middle"),
    *("cut", "torn", "damage", "corrupt", "flip", "lost"),
)


def node(reported: str) -> str:
    """The test's own name: several workers report it with its group after an @."""
    name, bracket, parameters = reported.partition("[")
    if not bracket:
        return name.partition("@")[0]
    inside, _, behind = parameters.rpartition("]")
    return f"{name}[{inside}]" if behind == "" or behind.startswith("@") else reported


def may_be_tried_again(failed: Sequence[str]) -> bool:
    """Few, all with servers, and none for which one failure counts."""
    return 0 < len(failed) <= AT_MOST and all(
        name.startswith(_SERVED) and not any(word in name for word in _ONE_FAILURE_IS_ENOUGH) for name in failed
    )


class _Failures:
    """Tests that failed, in their body or in a fixture, in the order of the reports."""

    def __init__(self) -> None:
        self.names: dict[str, None] = {}
        self.worker_died = False

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.names[node(report.nodeid)] = None
            self.worker_died |= "crashed while running" in str(report.longrepr)


def main(arguments: Sequence[str]) -> int:
    failures = _Failures()
    code = int(pytest.main(list(arguments), plugins=[failures]))
    failed = list(failures.names)
    final = failures.worker_died or os.environ.get("LOGKEEP_STRICT") or not may_be_tried_again(failed)
    if code != pytest.ExitCode.TESTS_FAILED or final:
        return code
    print("\nonce more, alone:", *failed, sep="\n  ", flush=True)
    again = subprocess.run([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *failed], check=False)
    if again.returncode == 0:
        print("\nUNSTEADY, passed alone only (to be fixed):", *failed, sep="\n  ", flush=True)
    return again.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
