"""Downloads jars by Maven coordinates with Spark's own Ivy, into the cache directory.

Each set of coordinates is resolved once, in a temporary directory that is renamed when it is complete; after that no
JVM is started for it. Mirrors are configured as for Spark: `spark.jars.repositories` or `spark.jars.ivySettings` in
the spark-defaults.conf of `SPARK_CONF_DIR`.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from logkeep.engine.spark.java import find_java
from logkeep.engine.spark.private import private_directory
from logkeep.errors import ServerFailed
from logkeep.model.cache import jars_dir

_TRIES = 3
"""A registry may drop a request; the next attempt reuses what was downloaded."""
_TIMEOUT_S = 600
_REMEDY = "check the network, or name a mirror with spark.jars.repositories in SPARK_CONF_DIR/spark-defaults.conf"


def spark_home() -> Path:
    """Where PySpark is installed; does not import it."""
    from importlib.util import find_spec  # noqa: PLC0415  # only needed here

    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ServerFailed("PySpark is not installed", remedy="install logkeep with its dependencies")
    return Path(spec.origin).parent


def spark_jar(pattern: str) -> Path:
    """The one jar inside PySpark that fits, for instance `scala-library-*.jar`."""
    return next((spark_home() / "jars").glob(pattern))


def resolve_jars(coordinates: Sequence[str], cache: Path, environ: Mapping[str, str] | None = None) -> list[Path]:
    """All jars that `coordinates` (`group:artifact:version`) need, without those that Spark brings along."""
    names = sorted(coordinates)
    key = hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]
    place = jars_dir(cache) / key
    if not place.is_dir():
        _resolve(names, place, dict(os.environ if environ is None else environ))
    return sorted(place.glob("*.jar"))


def _resolve(coordinates: Sequence[str], place: Path, environ: dict[str, str]) -> None:
    find_java(environ)
    private_directory(place.parent)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix="resolving-") as name:
        work = Path(name)
        jars = work / "ivy" / "jars"
        for _ in range(_TRIES):
            finished = _run_ivy(coordinates, work, environ)
            if finished.returncode == 0 and jars.is_dir():
                _publish(jars, place)
                return
        raise ServerFailed(
            f"jars could not be resolved: {_cause(finished.stderr)}", subject=", ".join(coordinates), remedy=_REMEDY
        )


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
        raise ServerFailed("resolving jars took too long", subject=", ".join(coordinates), remedy=_REMEDY) from error


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
