"""Class archives (AppCDS) of embedded servers: a JVM that finds one takes half as long to start.

`recorded` makes one of a server's run; later, every program from the same jars uses it, tools too. The JVM compares the
names, sizes and times of the jars and the checksums of the archive, and ignores one that does not fit.
"""

import functools
import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from logkeep.engine.spark.jvm.class_archive import ClassArchive
from logkeep.engine.spark.jvm.java import Java, find_java
from logkeep.errors import ConfigError
from logkeep.model.cache import archive_dir

_QUIET = "-Xlog:disable"
"""The JVM writes its remarks about an archive to the output of the program, which others read."""


def this_java() -> Java:
    """As `find_java`, which starts a JVM: once for each value of the variables."""
    return _java(os.environ.get("JAVA_HOME", ""), os.environ.get("PATH", ""))


@functools.cache
def _java(home: str, path: str) -> Java:
    return find_java({"JAVA_HOME": home, "PATH": path})


def archive_options(cache: Path, class_path: Sequence[Path | str]) -> list[str]:
    """JVM options that use the archive for these jars; none without one, or where other users can change it."""
    archive = _archive_for(cache, class_path)
    if not archive.exists:
        return []
    try:
        archive.prepare()
    except ConfigError:
        return []
    return [*archive.java_options(), _QUIET]


@contextmanager
def recorded(cache: Path, class_path: Sequence[Path | str]) -> Iterator[list[str]]:
    """JVM options of a server that records the classes it loads; it must have stopped normally when the block ends."""
    archive = _archive_for(cache, class_path)
    archive.prepare()
    try:
        yield [f"-XX:ArchiveClassesAtExit={archive.recording}", _QUIET]
        archive.keep()
        archive.file.chmod(0o400)
    finally:
        archive.drop()


def _archive_for(cache: Path, class_path: Sequence[Path | str]) -> ClassArchive:
    java = this_java()
    named = "\n".join([java.description, str(java.executable), *map(str, class_path)])
    name = f"servers-java{java.major}-{hashlib.sha256(named.encode()).hexdigest()[:12]}"
    directory = archive_dir(cache)
    return ClassArchive(directory / f"{name}.jsa", directory / f"{name}.{os.getpid()}.recording")
