"""A user without rights of its own: processes that run as it where the tests run as root."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from logkeep.model.cache import cache_dir
from tests.support.cli.processes import ROOT
from tests.support.processes import kept_variables

_NOBODY = 65534
UID = _NOBODY if os.geteuid() == 0 else os.geteuid()
_AS_NOBODY = ["setpriv", "--reuid", str(_NOBODY), "--regid", str(_NOBODY), "--clear-groups"]
# The interpreter may be in root's home. To read files gives no power over processes, which is what is tested.
_TO_THE_INTERPRETER = ["--inh-caps", "-all,+dac_read_search", "--ambient-caps", "-all,+dac_read_search"]
_BECOME = [*_AS_NOBODY, *_TO_THE_INTERPRETER] if os.geteuid() == 0 else []


@contextmanager
def home_of_plain_user() -> Iterator[Path]:
    """An empty directory that only this user can enter. Not below `tmp_path`: only root can enter that."""
    with tempfile.TemporaryDirectory(prefix="logkeep-user-") as made:
        path = Path(made)
        _own(path)
        yield path


def _own(path: Path) -> None:
    if os.geteuid() == 0:
        os.chown(path, UID, UID)


def started(command: Sequence[str], home: Path, environ: Mapping[str, str] | None = None) -> "subprocess.Popen[str]":
    """A process of this user, in its home, with core dumps allowed as far as the tests may allow them."""
    kept = kept_variables("PATH", "JAVA_HOME")
    own = {"HOME": str(home), "TMPDIR": str(home), "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [*_BECOME, "sh", "-c", 'ulimit -S -c "$(ulimit -H -c)"; exec "$@"', "sh", *command],
        cwd=home,
        env={**kept, **own, **(environ or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def share_compiled(home: Path) -> Path:
    """A cache with the kernels and the class archive that the tests have made: making them takes longer than a test."""
    shared, own = cache_dir(os.environ, Path.home()), home / "cache"
    for name in ("kernels", "classes"):
        (shared / name).mkdir(parents=True, exist_ok=True)
        shutil.copytree(shared / name, own / name, ignore=shutil.ignore_patterns("*.recording", "servers-*"))
    for path in (own, *own.rglob("*")):
        _own(path)
    return own
