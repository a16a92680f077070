"""Compiled kernels are machine code: those in a directory that another user can change are not loaded."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.other_user import give_to_other

_SOURCE = "from logkeep.formats.jit import kernel\n\n\n@kernel\ndef answer(number):\n    return number + {}\n"
_CALL = "import sys, logging; logging.basicConfig(); sys.path.insert(0, '.'); import small; print(small.answer(0))"


def test_a_planted_kernel_does_not_run(tmp_path: Path) -> None:
    """The stored code of one function is put into the place of another's, which numba does not notice."""
    cache, source = tmp_path / "cache", tmp_path / "small.py"

    def answer(number: int) -> tuple[str, str]:
        source.write_text(_SOURCE.format(number))
        environ = {**os.environ, "LOGKEEP_CACHE_DIR": str(cache), "PYTHONDONTWRITEBYTECODE": "1"}
        environ.pop("NUMBA_CACHE_DIR", None)
        done = subprocess.run(
            [sys.executable, "-c", _CALL], cwd=tmp_path, env=environ, capture_output=True, text=True, check=True
        )
        return done.stdout.strip(), done.stderr

    assert answer(1) == ("1", "")
    planted = next(cache.rglob("*.nbc")).read_bytes()
    assert answer(2) == ("2", "")
    for stored in cache.rglob("*.nbc"):
        stored.write_bytes(planted)
    give_to_other(cache)
    said, warned = answer(2)
    assert said == "2"
    assert "neither loaded nor stored" in warned
    assert "LOGKEEP_CACHE_DIR" in warned
