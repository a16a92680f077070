"""A real Zeebe under load, with backups in a real S3 server: started once for the tests of this directory.

Every command and what it printed is appended to the file that LOGKEEP_ZEEBE_TRANSCRIPT names.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers.s3 import S3Server, seaweed
from tests.support.servers.zeebe import HOME, Zeebe
from tests.support.zeebe.management import Management
from tests.support.zeebe.store_switch import StoreSwitch

BUCKET = "backups"
_WITHIN_S = 300


@dataclass
class World:
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
        command = [sys.executable, "-m", "logkeep.cli", *arguments, "--json", "--progress", "never"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_WITHIN_S, check=False)
        note(f"$ logkeep {' '.join(arguments)}\nexit {done.returncode}\n{_short(done.stdout)}{done.stderr[:2000]}")
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


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    sys.path.append(str(Path(os.environ[HOME]) / "python"))
    directory = tmp_path_factory.mktemp("zeebe")
    with seaweed(directory) as server:
        server.make_bucket(BUCKET)
        with (
            StoreSwitch(server.endpoint) as switch,
            Zeebe(directory / "first", switch.endpoint, BUCKET) as broker,
        ):
            yield World(directory, server, switch, broker)
