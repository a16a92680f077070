"""Downloads jars by Maven coordinates with Spark's own Ivy, into the cache directory.

Each set of coordinates is resolved once, in a temporary directory that is renamed when it is complete; after that no
JVM is started for it. Jars are compared with their pinned hashes after they were downloaded, and again by each process
that starts a server from them; the cache directory must be one that no other user can change.

Mirrors are configured as for Spark: `spark.jars.repositories` or `spark.jars.ivySettings` in the spark-defaults.conf of
`SPARK_CONF_DIR`.
"""

import functools
import hashlib
import importlib.metadata
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from logkeep.engine.spark.jvm.jar_lock import check_directory, check_files, pins_of, set_name
from logkeep.engine.spark.jvm.java import find_java
from logkeep.errors import JarsUnavailable, ServerFailed
from logkeep.file_owners import private_directory
from logkeep.model.cache import CACHE_REMEDY, jars_dir

_TRIES = 3
"""A registry may drop a request; the next attempt reuses what was downloaded."""
_TIMEOUT_S = 600
_WRONG_DOWNLOAD = "the registry sent other files than this release was tested with: use another mirror"
_WRONG_PYSPARK = "install PySpark again, in the version that Logkeep requires"


def spark_home() -> Path:
    """Where PySpark is installed; does not import it."""
    from importlib.util import find_spec  # noqa: PLC0415  # only needed here

    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ServerFailed("PySpark is not installed", remedy="install logkeep with its dependencies")
    return Path(spec.origin).parent


def spark_jars(*patterns: str) -> list[Path]:
    """The jars inside PySpark that fit, for instance `scala-library-*.jar`, compared with their pins."""
    found = tuple(jar for pattern in patterns for jar in sorted((spark_home() / "jars").glob(pattern)))
    _check_spark_jars(found)
    return list(found)


def resolve_jars(coordinates: Sequence[str], cache: Path, environ: Mapping[str, str] | None = None) -> list[Path]:
    """All jars that `coordinates` (`group:artifact:version`) need, without those that Spark contains.

    Raises JarsUntrusted if they are not the pinned ones, and ConfigError if others can change the cache directory.
    """
    name = set_name(coordinates)
    pins_of(name)
    private_directory(jars_dir(cache), remedy=CACHE_REMEDY)
    place = jars_place(coordinates, cache)
    if not place.is_dir():
        with fetched(coordinates, place.parent, dict(os.environ if environ is None else environ)) as jars:
            check_directory(jars, name, remedy=_WRONG_DOWNLOAD)
            _publish(jars, place)
    _check_place(place, name)
    return sorted(place.glob("*.jar"))


def jars_place(coordinates: Sequence[str], cache: Path) -> Path:
    """The directory of a set of coordinates."""
    return jars_dir(cache) / hashlib.sha256("\n".join(sorted(coordinates)).encode()).hexdigest()[:16]


@functools.cache  # no other user can change the directory, so once per process is enough
def _check_place(place: Path, name: str) -> None:
    check_directory(place, name, remedy=f"remove {place} and run again")


@functools.cache
def _check_spark_jars(jars: tuple[Path, ...]) -> None:
    check_files(jars, f"pyspark:{importlib.metadata.version('pyspark')}", remedy=_WRONG_PYSPARK)


@contextmanager
def fetched(coordinates: Sequence[str], beside: Path, environ: dict[str, str]) -> Iterator[Path]:
    """Download jars, unchecked, into a temporary directory below `beside`."""
    find_java(environ)
    names = sorted(coordinates)
    with tempfile.TemporaryDirectory(dir=beside, prefix="resolving-") as name:
        work = Path(name)
        jars = work / "ivy" / "jars"
        for _ in range(_TRIES):
            finished = _run_ivy(names, work, environ)
            if finished.returncode == 0 and jars.is_dir():
                yield jars
                return
        raise JarsUnavailable(f"jars could not be resolved: {_cause(finished.stderr)}", subject=", ".join(names))


def _run_ivy(coordinates: Sequence[str], work: Path, environ: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    """Run spark-submit with these packages on an empty program."""
    program = work / "nothing.py"
    program.write_text("")
    home = spark_home()
    command = [str(home / "bin" / "spark-submit"), "--master", "local[1]"]
    command += ["--conf", f"spark.jars.ivy={work / 'ivy'}", "--driver-memory", "512m"]
    command += ["--driver-java-options", f"-Duser.home={work} -XX:TieredStopAtLevel=1 -XX:-UsePerfData"]
    command += ["--packages", ",".join(coordinates), str(program)]
    variables = environ | {"SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    variables |= {"PYTHONSAFEPATH": "1"}
    try:
        return subprocess.run(
            command,
            cwd=work,
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise JarsUnavailable("resolving jars took too long", subject=", ".join(coordinates)) from error


def _publish(jars: Path, place: Path) -> None:
    try:
        jars.rename(place)
    except OSError:
        # Another process was faster; its directory is complete.
        if not place.is_dir():
            raise
        shutil.rmtree(jars)


def _cause(output: str) -> str:
    """The most useful line of Ivy's long output."""
    lines = [line.strip() for line in output.splitlines()]
    for sign in ("not found", "Connection refused", "UnknownHost", "timed out", "rror", "xception"):
        if found := [line for line in lines if sign in line]:
            return found[0][:300]
    return "no answer"
