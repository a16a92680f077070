"""The command in the tests' own process: the same entry point, without a start of Python for every call."""

import io
import json
import os
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from logkeep.cli.frame.main import call
from logkeep.cli.frame.world import World
from logkeep.cli.terminal.console import standard_console
from logkeep.config.places import NOWHERE
from tests.support.cli.filled_repository import document_of, tree


@dataclass(frozen=True)
class Called:
    code: int
    stdout: str
    stderr: str

    @property
    def document(self) -> dict[str, Any]:
        """Checked against its published schema."""
        return document_of(self.stdout)


@dataclass(frozen=True)
class Here:
    """A repository in a directory, and the command that works on it."""

    root: Path
    more: Mapping[str, str] = field(default_factory=dict)

    @property
    def environ(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "JAVA_HOME", "LOGKEEP_CACHE_DIR") if name in os.environ}
        return {**kept, "HOME": str(self.root), "LOGKEEP_REPO": f"file://{self.root / 'repo'}", **self.more}

    def run(self, *arguments: str, code: int = 0) -> Called:
        called = self.run_any(*arguments)
        assert called.code == code, f"{arguments} ended with {called.code}\n{called.stdout}\n{called.stderr}"
        return called

    def run_any(self, *arguments: str) -> Called:
        """However it ends."""
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            world = World(self.environ, standard_console(self.environ), lambda _: NOWHERE, json="--json" in arguments)
            ended = call(list(arguments), world)
        return Called(ended, out.getvalue(), err.getvalue())

    def json(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        return self.run(*arguments, "--json", code=code).document

    def error(self, *arguments: str, code: int) -> dict[str, Any]:
        """The one document on stderr."""
        called = self.run(*arguments, "--json", "-q", code=code)
        told: dict[str, Any] = json.loads(called.stderr.splitlines()[-1])
        return told

    def tree(self) -> dict[str, str]:
        return tree(self.root / "repo")
