"""Processes of an application whose log is on a broker: started, killed, and started again with their directories."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from logkeep.application.application_process import HOLD_AT, KILL_AT
from tests.support.processes import PATIENCE_S

_ROOT = Path(__file__).parents[3]


class ApplicationProcesses:
    """`module:function` makes the application of a name."""

    def __init__(self, home: Path, bootstrap: str, made_by: str, name: str) -> None:
        self.home, self.bootstrap, self.name = home, bootstrap, name
        self.repository = home / "repository"
        module, _, function = made_by.partition(":")
        self.client_config: Path | None = None
        """Properties of librdkafka for the processes."""
        self._program = f"from {module} import {function}; {function}({name!r}).main()"

    @contextmanager
    def running(self, data: str, *, kill_at: str = "", hold_at: str = "") -> Iterator["subprocess.Popen[bytes]"]:
        """A process with its data directory; killed at the end of the block, if it still runs."""
        where = ["--bootstrap-servers", self.bootstrap, "--repository", f"file://{self.repository}"]
        if self.client_config is not None:
            where += ["--client-config", str(self.client_config)]
        command = [sys.executable, "-c", self._program, "run", "--data", str(self.home / data), *where]
        environ = {**os.environ, KILL_AT: kill_at, HOLD_AT: hold_at, "PYTHONPATH": str(_ROOT)}
        with (self.home / f"{data}.out").open("ab") as out:
            process = subprocess.Popen(command, cwd=_ROOT, env=environ, stdout=out, stderr=out)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def killed_itself(process: "subprocess.Popen[bytes]") -> bool:
    return process.wait(PATIENCE_S) == -signal.SIGKILL
