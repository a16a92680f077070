"""The pages for developers, formats and decisions name modules that exist; docs/ARCHITECTURE.md names every package."""

import re
from pathlib import Path, PurePosixPath

import pytest

from tests.docs.pages import ROOT

SOURCE = ROOT / "src" / "logkeep"
PACKAGES = {path.parent.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("__init__.py")} - {"."}
MODULES = PACKAGES | {path.relative_to(SOURCE).with_suffix("").as_posix() for path in SOURCE.rglob("*.py")}
ARCHITECTURE, CONTRIBUTING = ROOT / "docs" / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"
_OTHER_PAGES = [page for folder in ("formats", "decisions") for page in sorted((ROOT / "docs" / folder).glob("*.md"))]
_NO_MODULES = {
    *("begin", "complete", "create", "created", "data", "delete", "failed", "group", "read_manifest"),
    *("__consumer_offsets", "logkeep", "pyspark_logkeep"),
    *("unit", "property", "golden", "corruption", "crash", "integration", "e2e", "support"),
    *("copy_log", "except", "find_coordinators", "layout.collectable", "noqa", "plan_backup", "seal"),
    *("size_bytes", "timeout_s", "tmp_path", "xdist_group"),
    *("utils", "helpers", "common", "manager"),
}
"""What these pages quote besides modules: functions, states, directories of tests, names that are not used here."""


@pytest.mark.parametrize("page", [ARCHITECTURE, CONTRIBUTING], ids=lambda page: page.name)
def test_named_modules_exist(page: Path) -> None:
    named = set(re.findall(r"`([a-z_0-9/.]+)`", page.read_text())) - _NO_MODULES
    assert {name for name in named if not _is_module(name) and not (ROOT / name).exists()} == set()


@pytest.mark.parametrize("page", _OTHER_PAGES, ids=lambda page: page.name)
def test_named_paths_exist(page: Path) -> None:
    """Formats and decisions quote fields and objects too: only a name with a slash inside is taken for a module."""
    named = set(re.findall(r"`([a-z_0-9]+/[a-z_0-9][a-z_0-9/.]*)`", page.read_text()))
    assert {name for name in named if not _is_module(name) and not (ROOT / name).exists()} == set()


def _is_module(name: str) -> bool:
    """A whole path, or its end: pages shorten it where the paragraph has named the package."""
    wanted = "/" + name.rstrip("/").removesuffix(".py")
    return any(f"/{module}".endswith(wanted) for module in MODULES)


def test_every_package_is_in_the_tree_or_a_layer() -> None:
    _, layers, tree, _ = re.split(r"^## (?:Layers|The tree|Walks)$", ARCHITECTURE.read_text(), flags=re.M)
    named = {name for line in re.findall(r"^ {4}([a-z_ |]+?)(?: {2}|$)", layers, re.M) for name in line.split(" | ")}
    for row in re.findall(r"^\| ([^|]*`[^|]+) \|", tree, re.M):
        first, *others = re.findall(r"`(.+?)`", row)
        named |= {first, *(_beside(first, name) for name in others)}
    assert PACKAGES - named == set()
    assert named - MODULES == {"pyspark_logkeep", "logkeep"}


def _beside(first: str, name: str) -> str:
    """The package that a row means by a name after its first one: inside of that, or of a package around it."""
    around = [PurePosixPath(first), *PurePosixPath(first).parents]
    return next((str(each / name) for each in around if str(each / name) in MODULES), name)
