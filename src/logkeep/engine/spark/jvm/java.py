"""Finds the Java runtime and checks its version, before Spark fails with a less clear error."""

import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from logkeep.errors import EngineUnavailable

OLDEST = 17
_ANSWER_TIMEOUT_S = 30
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


@dataclass(frozen=True)
class Java:
    """A runtime that is new enough. `description` is the output of `-version`; it changes with every build."""

    executable: Path
    major: int
    description: str


def find_java(environ: Mapping[str, str]) -> Java:
    """The Java of `JAVA_HOME`, else of `PATH`. Raises `EngineUnavailable` if there is none or it is too old."""
    executable = _executable(environ)
    description = _ask_version(executable)
    match = _VERSION.search(description)
    if match is None:
        raise EngineUnavailable("it does not answer `-version` like a Java runtime", subject=str(executable))
    if int(match[1]) < OLDEST:
        raise EngineUnavailable(
            f"Java {match[1]} is too old; Java {OLDEST} or later is needed", subject=str(executable)
        )
    return Java(executable, int(match[1]), description)


def _executable(environ: Mapping[str, str]) -> Path:
    if home := environ.get("JAVA_HOME"):
        executable = Path(home).absolute() / "bin" / "java"
        if not executable.is_file():
            raise EngineUnavailable("JAVA_HOME does not contain a Java runtime (bin/java)", subject=home)
        return executable
    found = shutil.which("java", path=environ.get("PATH"))
    if found is None:
        raise EngineUnavailable("no Java runtime found")
    return Path(found).absolute()


def _ask_version(executable: Path) -> str:
    command = [str(executable), "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-version"]
    try:
        answer = subprocess.run(
            command,
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_ANSWER_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EngineUnavailable("the Java runtime does not start", subject=str(executable)) from error
    return answer.stderr + answer.stdout
