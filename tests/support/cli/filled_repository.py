"""A directory repository that the scripted source has filled, and the real command that works on it."""

import hashlib
import json
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema

from logkeep.engine.inline import InlineEngine
from logkeep.model.ids import BackupId
from logkeep.model.time import random_token
from logkeep.repository.access import create_repository, open_repository
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.format import StoreFacts
from logkeep.store.base import Store
from logkeep.store.local.store import LocalStore
from tests.support.cli.json_times import wrong_times
from tests.support.cli.processes import ROOT, logkeep
from tests.support.scripted.backup import Ends, back_up

DAYS_AGO = (9, 7, 5, 3, 1)
ENDS: tuple[Ends, ...] = ({0: 6, 1: 4}, {0: 9, 1: 7}, {0: 20, 1: 18}, {0: 21, 1: 19}, {0: 40, 1: 38})
SCHEMAS = ROOT / "docs" / "reference" / "schemas"
Done = subprocess.CompletedProcess[str]


@dataclass(frozen=True)
class Filled:
    """A repository below a home directory of its own."""

    home: Path

    @property
    def root(self) -> Path:
        return self.home / "repo"

    @property
    def url(self) -> str:
        return f"file://{self.root}"

    @property
    def ids(self) -> list[int]:
        return sorted(int(p.name) for p in (self.root / "sources/prod/backups").iterdir())

    def place(self, source: str = "prod") -> SourceRef:
        return open_repository(LocalStore(self.root)).place(source)

    def file(self, pattern: str) -> Path:
        found = sorted(self.root.glob(pattern))
        assert found, f"nothing is called {pattern}"
        return found[0]

    def name(self, path: Path) -> str:
        return str(path.relative_to(self.root))

    def run(self, *arguments: str, code: int = 0, env: Mapping[str, str] | None = None) -> Done:
        """The command as a user types it; it must end with this code."""
        done = logkeep(*arguments, home=self.home, env={"LOGKEEP_REPO": self.url, **(env or {})})
        assert done.returncode == code, f"{arguments} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        return done

    def json(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        """The one document on stdout, checked against its published schema."""
        return document(self.run(*arguments, "--json", code=code))

    def tree(self) -> dict[str, str]:
        """Everything in the repository, by name: content and mode."""
        return tree(self.root)

    def size(self) -> int:
        return sum(p.stat().st_size for p in self.root.rglob("*") if p.is_file())

    def listed(self) -> list[int]:
        return [row["id"] for row in self.json("list")["backups"]]


def document(done: Done) -> dict[str, Any]:
    return document_of(done.stdout)


def document_of(stdout: str) -> dict[str, Any]:
    shown: dict[str, Any] = json.loads(stdout)
    schema, published = _published(shown["verb"])
    published.validate(shown)
    assert not wrong_times(shown, schema)
    return shown


@cache
def _published(verb: str) -> tuple[dict[str, Any], jsonschema.Draft202012Validator]:
    """To check a schema itself takes longer than most commands: once is enough."""
    schema: dict[str, Any] = json.loads((SCHEMAS / f"{verb.replace(' ', '-')}.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return schema, jsonschema.Draft202012Validator(schema)


def tree(root: Path) -> dict[str, str]:
    return {str(p.relative_to(root)): f"{p.stat().st_mode:o} {_digest(p)}" for p in sorted(root.rglob("*"))}


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def new_repository(store: Store) -> str:
    facts = StoreFacts(put_new=True, replace=True, durable=True)
    return create_repository(store, facts, datetime.now(UTC), random_token).document.repository


def backed_up(place: SourceRef, ends: Ends, *, days_ago: float = 0, wanted: int | None = None) -> int:
    """One backup that was taken some days ago."""
    then = datetime.now(UTC) - timedelta(days=days_ago)
    chosen = None if wanted is None else BackupId(wanted)
    return back_up(place, ends, InlineEngine(), lambda: then, random_token, wanted=chosen).id


def fill(home: Path) -> Filled:
    """Five backups of one source over nine days."""
    filled = empty(home)
    for ends, days in zip(ENDS, DAYS_AGO, strict=True):
        backed_up(filled.place(), ends, days_ago=days)
    return filled


def empty(home: Path) -> Filled:
    store = LocalStore(home / "repo")
    store.create()
    new_repository(store)
    return Filled(home)


def copied(original: Filled, home: Path) -> Filled:
    home.mkdir(exist_ok=True)
    shutil.copytree(original.root, home / "repo")
    return Filled(home)
