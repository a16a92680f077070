"""The configuration of a Spark session. Pure."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from logkeep.engine.outcomes import MAX_ATTEMPTS
from logkeep.model.secret import Secret

_PLAIN_LOCAL = re.compile(r"local(?:\[(\d+|\*)\])?")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_PATH_LISTS = ("spark.jars", "spark.files", "spark.archives", "spark.submit.pyFiles", "spark.local.dir")
_CLASS_PATHS = ("spark.driver.extraClassPath", "spark.driver.extraLibraryPath")
_PATHS = ("spark.eventLog.dir", "spark.jars.ivy", "spark.jars.ivySettings")
"""Settings whose values the driver reads as local paths."""
_MAX_SOCKET_DIR = 60
"""A Unix socket's path has at most 107 bytes, and Spark's names take 42 of them."""


@dataclass(frozen=True)
class SparkSettings:
    """What the user can choose."""

    cache_dir: Path
    master: str = "local[*]"
    conf: Mapping[str, str] = field(default_factory=dict)
    """Passed to Spark unchanged; wins over ours, except what `protection` demands. Must not hold secrets."""
    secret: Secret | None = None
    """The secret of the cluster, where Spark does not make its own. Never part of a setting or an argument."""
    keep_log: bool = False
    """Keep the JVM's log also after success."""


def effective_master(master: str) -> str:
    """`local[N]` never retries a task in Spark; `local[N,4]` does."""
    match = _PLAIN_LOCAL.fullmatch(master)
    if match is None:
        return master
    cores = match[1] or ("*" if "[" in master else "1")
    return f"local[{cores},{MAX_ATTEMPTS}]"


def is_local(master: str) -> bool:
    """Whether workers run on this machine, as children of the driver."""
    return master == "local" or master.startswith("local[")


def attempts(settings: SparkSettings) -> int:
    """How often Spark tries a task."""
    if match := re.fullmatch(r"local\[[^,\]]+,(\d+)\]", effective_master(settings.master)):
        return int(match[1])
    return int(settings.conf.get("spark.task.maxFailures", MAX_ATTEMPTS))


def tasks_at_once(master: str, units: int, cores: int) -> int:
    """How many of these units may run at the same time; all of them on a cluster, whose size is not known."""
    match = re.fullmatch(r"local\[(\d+|\*),\d+\]", effective_master(master))
    if match is None:
        return max(units, 1)
    return max(min(units, cores if match[1] == "*" else int(match[1])), 1)


def session_conf(
    settings: SparkSettings, scratch: Path, token: str, java_options: list[str], fixed: Mapping[str, str]
) -> dict[str, str]:
    """The lean session for jobs whose data never enters the JVM: C1 compiler, serial collector, no UI.

    `fixed` wins over everything, the user's settings too.
    """
    options = [
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-XX:-UsePerfData",
        f"-Djava.io.tmpdir={scratch}",
        f"-Dderby.system.home={scratch}",
        *java_options,
    ]
    conf = {
        "spark.master": effective_master(settings.master),
        "spark.app.name": "logkeep",
        "spark.logkeep.session": token,
        "spark.log.level": "WARN",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.adaptive.enabled": "false",
        "spark.speculation": "false",
        "spark.task.maxFailures": str(MAX_ATTEMPTS),
        "spark.python.task.killTimeout": "500ms",
        "spark.python.worker.faulthandler.enabled": "true",
        "spark.python.unix.domain.socket.enabled": str(len(str(scratch)) <= _MAX_SOCKET_DIR).lower(),
        "spark.driver.memory": "1g",
    }
    if is_local(settings.master):
        conf |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    conf |= settings.conf
    # A unit may write to a target: two copies of one task must not run at the same time.
    conf["spark.speculation"] = "false"
    users = settings.conf.get("spark.driver.extraJavaOptions", "")
    conf["spark.driver.extraJavaOptions"] = f"{shlex.join(options)} {users}".strip()
    return conf | dict(fixed)


def absolute_paths(conf: Mapping[str, str], directory: Path) -> dict[str, str]:
    """The settings with paths relative to `directory` made absolute: the JVM starts in a directory of its own."""
    separators = dict.fromkeys(_PATH_LISTS, ",") | dict.fromkeys(_CLASS_PATHS, ":") | dict.fromkeys(_PATHS, "\0")
    return {
        key: value
        if key not in separators
        else separators[key].join(_absolute(each, directory) for each in value.split(separators[key]))
        for key, value in conf.items()
    }


def _absolute(text: str, directory: Path) -> str:
    """URLs and empty parts stay as they are; `#name` at the end is Spark's way to rename a file."""
    return str(directory / text) if text and not _URL.match(text) else text
