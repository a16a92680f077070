"""What the tests with a real Zeebe share: its servers, the backups that were taken, commands and their transcript.

Every command and what it printed is appended to the file that LOGKEEP_ZEEBE_TRANSCRIPT names.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.servers.s3 import S3Server
from tests.support.servers.zeebe import Zeebe
from tests.support.zeebe.management import Management
from tests.support.zeebe.store_switch import StoreSwitch

BUCKET = "backups"
_WITHIN_S = 300


@dataclass
class LiveWorld:
    directory: Path
    server: S3Server
    switch: StoreSwitch
    broker: Zeebe
    taken: list[int] = field(default_factory=list)
    before: dict[int, set[str]] = field(default_factory=dict)
    """Orders that were accepted before a backup was asked for."""
    after: dict[int, set[str]] = field(default_factory=dict)
    """Orders that began after it was completed."""

    @property
    def store(self) -> str:
        return self.server.url(BUCKET)

    @property
    def management(self) -> Management:
        return Management(self.broker.management_url)

    def logkeep(self, *arguments: str, expected: int = 0) -> Any:
        """Run a command with --json; returns its document, or for an error what it printed."""
        command = [sys.executable, "-m", "logkeep.cli", *arguments, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_WITHIN_S, check=False)
        trouble = done.stderr if done.returncode else ""
        note(f"$ logkeep {' '.join(arguments)}\nexit {done.returncode}\n{_short(done.stdout)}{_short(trouble)}")
        assert done.returncode == expected, done.stdout + done.stderr
        return json.loads(done.stdout) if done.stdout.startswith("{") else done.stdout + done.stderr


def note(text: str) -> None:
    """Print to the transcript."""
    print(text, flush=True)
    if (name := os.environ.get("LOGKEEP_ZEEBE_TRANSCRIPT")) is not None:
        with Path(name).open("a") as file:
            file.write(text + "\n")


def _short(text: str) -> str:
    return text if len(text) < 1500 else text[:1500] + " …\n"
