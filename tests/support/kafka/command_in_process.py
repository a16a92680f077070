"""The command line in the test's own process: what it says is what a user sees, and nothing is imported anew."""

import os
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

from logkeep.cli.frame.main import call
from logkeep.cli.frame.world import World
from logkeep.cli.terminal.console import standard_console
from logkeep.config.places import NOWHERE
from logkeep.model.cache import cache_dir
from tests.e2e.test_bad_input import one_error
from tests.support.cli.filled_repository import document_of


@dataclass(frozen=True)
class Said:
    """How a call ended."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Commands:
    """Calls with one repository and one home; every relative path would be one of the test's own directory."""

    repo: str
    home: Path
    environ: Mapping[str, str] = field(default_factory=dict)

    def say(self, *arguments: str) -> Said:
        out, err = StringIO(), StringIO()
        cache = str(cache_dir(os.environ, Path.home()))
        known = {"LOGKEEP_REPO": self.repo, "HOME": str(self.home), "LOGKEEP_CACHE_DIR": cache, **self.environ}
        with redirect_stdout(out), redirect_stderr(err):
            world = World(
                known, standard_console(known, stdin=StringIO()), lambda _: NOWHERE, json="--json" in arguments
            )
            code = call(list(arguments), world)
        assert "Traceback" not in err.getvalue(), err.getvalue()
        return Said(code, out.getvalue(), err.getvalue())

    def json(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        """The one document on stdout, checked against its published schema."""
        said = self.say(*arguments, "--json")
        assert said.code == code, f"{arguments} ended with {said.code}\n{said.out}\n{said.err}"
        return document_of(said.out)

    def error(self, *arguments: str, code: int) -> str:
        """One error in three parts, and nothing else."""
        said = self.say(*arguments)
        assert said.code == code, f"{arguments} ended with {said.code}\n{said.out}\n{said.err}"
        assert said.out == ""
        return one_error(said.err)
