"""`python -m tests.second_try ARGUMENTS`: pytest, and a second try, alone, for what the neighbours may have disturbed.

Four thousand tests share two cores with real servers, and on a slow day one of them meets a moment that its scene did
not foresee. A few such failures are tried once more with nothing beside them. What fails twice fails; what passes then
is named UNSTEADY below the first failure's full report, and is to be mended. No second try for a test of races, deaths,
damage or the cut (there one failure in a thousand is the very fault that is looked for), for a test without a server
(nothing disturbs it), when a process of the tests died, or when so much failed that it cannot be bad luck.
`LOGKEEP_STRICT=1` allows none at all.
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
    """The test's own name: among several workers it is reported with its group behind an @."""
    name, bracket, parameters = reported.partition("[")
    if not bracket:
        return name.partition("@")[0]
    inside, _, behind = parameters.rpartition("]")
    return f"{name}[{inside}]" if behind == "" or behind.startswith("@") else reported


def may_be_tried_again(failed: Sequence[str]) -> bool:
    """Few, all with servers, and none whose single failure would be the news."""
    return 0 < len(failed) <= AT_MOST and all(
        name.startswith(_SERVED) and not any(word in name for word in _ONE_FAILURE_IS_ENOUGH) for name in failed
    )


class _Failures:
    """What failed, in its body or in its scene, in the order of the reports."""

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
        print("\nUNSTEADY, passed alone only (to be mended):", *failed, sep="\n  ", flush=True)
    return again.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
