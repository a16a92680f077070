"""Compiled kernels are machine code: those in a directory that another user can change are not loaded."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import logkeep
from logkeep.formats import kernel_files
from tests.support.other_user import give_to_other

_SOURCE = """
import logkeep.formats.kernel_files as files
from logkeep.formats.jit import kernel
from pathlib import Path
files.BESIDE_THE_PACKAGE = Path("beside").absolute()

@kernel(lambda number: 1 << 60)
def answer(number):
    return number + {}
"""
_CALL = "import sys, logging; logging.basicConfig(); sys.path.insert(0, '.'); import small; print(small.answer(0))"
_COMPILING = "compiling kernels, which takes about ten seconds"


def _answer(home: Path, number: int, cache: str = "cache") -> tuple[str, str]:
    """The result of a kernel that adds this number, in a process of its own, and what it reports."""
    (home / "small.py").write_text(_SOURCE.format(number))
    environ = {**os.environ, "LOGKEEP_CACHE_DIR": str(home / cache), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", _CALL], cwd=home, env=environ, capture_output=True, text=True, check=True
    )
    return done.stdout.strip(), done.stderr


def test_a_planted_kernel_does_not_run(tmp_path: Path) -> None:
    """The stored code of one function is put into the place of another's, which numba does not notice."""
    cache = tmp_path / "cache"
    said, reported = _answer(tmp_path, 1)
    assert (said, reported.count(_COMPILING), reported.count("\n")) == ("1", 1, 1)
    assert str(cache) in reported
    assert _answer(tmp_path, 1) == ("1", "")
    planted = next(cache.rglob("*.nbc")).read_bytes()
    assert _answer(tmp_path, 2)[0] == "2"
    for stored in cache.rglob("*.nbc"):
        stored.write_bytes(planted)
    give_to_other(cache)
    said, warned = _answer(tmp_path, 2)
    assert said == "2"
    assert "neither loaded nor stored" in warned
    assert "LOGKEEP_CACHE_DIR" in warned


def test_kernels_beside_the_package_are_used_first(tmp_path: Path) -> None:
    """Also where no cache can be written; not if another user owns them, and not those of another source."""
    _answer(tmp_path, 1)
    shutil.move(next((tmp_path / "cache" / "kernels").iterdir()), tmp_path / "beside")
    (tmp_path / "file").touch()
    assert _answer(tmp_path, 1, "file/cache") == ("1", "")
    assert _answer(tmp_path, 1, "empty") == ("1", "")
    assert not list((tmp_path / "empty").rglob("*.nb*"))
    said, reported = _answer(tmp_path, 2, "empty")
    assert said == "2"
    assert _COMPILING in reported
    give_to_other(tmp_path / "beside")
    assert _COMPILING in _answer(tmp_path, 1, "new")[1]


@pytest.mark.soak
def test_a_damaged_file_is_compiled_anew(tmp_path: Path) -> None:
    _answer(tmp_path, 1)
    for stored in (tmp_path / "cache").rglob("*.nb?"):
        stored.write_bytes(stored.read_bytes()[:20])
    assert _answer(tmp_path, 1)[0] == "1"
    assert _answer(tmp_path, 1) == ("1", "")


_ONE_KERNEL = """
import logging, numpy as np
from logkeep.formats import jit, warm
from logkeep.formats.compare.digest_kernels import fold_places

def one():
    jit.compile_from_now_on()
    fold_places(np.arange(3), np.zeros(3, np.uint64))

logging.basicConfig(level=logging.WARNING)
"""


def test_stored_kernels_are_for_all_kernels_at_any_depth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """numba does not notice a change of a kernel that another one calls."""
    monkeypatch.setattr("importlib.resources.files", lambda _: tmp_path)
    nested = tmp_path / "kafka" / "restore" / "merge_kernels.py"
    nested.parent.mkdir(parents=True)
    editions = set()
    for text in ("", "1", "2"):
        nested.write_text(text)
        editions.add(kernel_files.edition.__wrapped__())
    assert len(editions) == 3


def test_modules_of_kernels_have_different_names() -> None:
    """Stored code is found by the name of its module, without its package."""
    names = [path.name for path in (Path(logkeep.__file__).parent / "formats").rglob("*_kernels.py")]
    assert len(names) == len(set(names)) > 20


def _declared_kernels() -> set[str]:
    """All functions below `formats` that are decorated with `@kernel(…)`."""
    return {
        f"{path.stem}.{node.name}"
        for path in (Path(logkeep.__file__).parent / "formats").rglob("*_kernels.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef)
        and any(
            isinstance(by, ast.Call) and isinstance(by.func, ast.Name) and by.func.id == "kernel"
            for by in node.decorator_list
        )
    }


@pytest.mark.parametrize("kernels", ["one", pytest.param("all", marks=pytest.mark.soak)])
def test_installing_compiles_kernels_beside_the_package(tmp_path: Path, kernels: str) -> None:
    """What `make install` does, in a copy of the package; every user can read the result."""
    package = tmp_path / "logkeep"
    shutil.copytree(Path(logkeep.__file__).parent, package, ignore=shutil.ignore_patterns("compiled", "__pycache__"))
    environ = {**os.environ, "PYTHONPATH": str(tmp_path), "LOGKEEP_CACHE_DIR": str(tmp_path / "cache")}
    start = _ONE_KERNEL + ("warm.warm = one\n" if kernels == "one" else "")

    def reported(code: str) -> str:
        command = [sys.executable, "-c", start + code]
        return subprocess.run(command, cwd=tmp_path, env=environ, check=True, capture_output=True, text=True).stderr

    assert _COMPILING in reported("assert warm.compile_beside_package()")
    made = package / "formats" / "compiled"
    names = {path.name.partition("-")[0] for path in made.glob("*.nbc")}
    assert names == ({"digest_kernels.fold_places"} if kernels == "one" else _declared_kernels())
    assert {path.stat().st_mode & 0o777 for path in made.iterdir()} == {0o644}
    assert made.stat().st_mode & 0o777 == 0o755
    assert [path.name for path in made.parent.glob(".compiled*")] == []
    assert reported("warm.warm()") == ""
    assert not list((tmp_path / "cache").rglob("*.nb?"))
