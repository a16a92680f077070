"""The class archive (AppCDS) of the JVM: it makes later starts twice as fast as the first.

The first run that ends normally writes the classes it loaded to a temporary file when its JVM exits; `keep` renames
it, so no start ever sees an incomplete archive. The name depends on the Java build, the PySpark version and its
directory: a new combination records a new archive. The JVM checks the file's checksums and ignores it when they are
wrong.
"""

import hashlib
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from logkeep.engine.spark.jvm.java import Java
from logkeep.file_owners import private_directory
from logkeep.model.cache import CACHE_REMEDY

_UNUSED_S = 60 * 86_400
"""An archive takes about 160 MB: unused ones are removed after this time."""
_ABANDONED_S = 3_600


@dataclass(frozen=True)
class ClassArchive:
    """The archive of one combination of Java, PySpark and place."""

    file: Path
    recording: Path
    """The temporary file of this process."""

    @property
    def exists(self) -> bool:
        return self.file.is_file()

    def java_options(self) -> list[str]:
        """JVM options: use the archive if there is one, else record it."""
        if self.exists:
            return [f"-XX:SharedArchiveFile={self.file}", "-XX:+VerifySharedSpaces"]
        # Recording logs every class that cannot be archived: hundreds of useless lines.
        return [f"-XX:ArchiveClassesAtExit={self.recording}", "-Xlog:cds*=off"]

    def prepare(self) -> None:
        """Make the directory, or mark the archive as used. Raises ConfigError if others can change the directory."""
        private_directory(self.file.parent, remedy=CACHE_REMEDY)
        with suppress(FileNotFoundError):
            os.utime(self.file)

    def keep(self) -> None:
        """Rename the recorded file, if there is one: after a normal exit of the JVM."""
        if self.recording.exists():
            self.recording.replace(self.file)
            self._remove_unused(time.time())

    def drop(self) -> None:
        """Remove the recorded file: after any other exit."""
        self.recording.unlink(missing_ok=True)

    def distrust(self) -> None:
        """A start with this archive failed: never use it again."""
        self.file.unlink(missing_ok=True)

    def _remove_unused(self, now_s: float) -> None:
        for other in self.file.parent.iterdir():
            limit_s = _UNUSED_S if other.suffix == ".jsa" else _ABANDONED_S
            with suppress(OSError):
                if other.stat().st_mtime < now_s - limit_s:
                    other.unlink()


def class_archive(directory: Path, java: Java, spark_home: Path, spark_version: str, unique: str) -> ClassArchive:
    """Name the archive for this combination; `unique` names the recording process."""
    key = hashlib.sha256(f"{java.description}\n{java.executable}\n{spark_home}".encode()).hexdigest()[:12]
    name = f"spark-{spark_version}-java{java.major}-{key}"
    return ClassArchive(directory / f"{name}.jsa", directory / f"{name}.{unique}.recording")


def has_archive(directory: Path) -> bool:
    """Whether an earlier run left an archive; it may be of another Java, which only that Java's start can find out."""
    return any(directory.glob("spark-*.jsa"))
