"""The class archive (AppCDS): what makes the second start of the JVM twice as fast as the first.

The first orderly run writes the classes it loaded to a temporary name when its JVM exits; `keep` renames the file, so
no start ever sees half of one. The name holds the Java build, the PySpark version and its place: a new combination
records anew. The JVM checks the file's checksums before it uses it and goes on without it when they are wrong.
"""

import hashlib
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from logkeep.engine.spark.java import Java

_UNUSED_S = 60 * 86_400
"""An archive is about 160 MB: those of combinations that were not used for so long are removed."""
_ABANDONED_S = 3_600


@dataclass(frozen=True)
class ClassArchive:
    """The archive of one combination of Java, PySpark and place."""

    file: Path
    recording: Path
    """This process's own temporary name."""

    @property
    def exists(self) -> bool:
        return self.file.is_file()

    def java_options(self) -> list[str]:
        """What to tell the JVM: use the archive if there is one, else record it."""
        if self.exists:
            return [f"-XX:SharedArchiveFile={self.file}", "-XX:+VerifySharedSpaces"]
        # Recording complains of every class that cannot be archived: hundreds of lines that help nobody.
        return [f"-XX:ArchiveClassesAtExit={self.recording}", "-Xlog:cds*=off"]

    def prepare(self) -> None:
        """Make the directory, or mark the archive as used."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            os.utime(self.file)

    def keep(self) -> None:
        """After an orderly exit of the JVM: give the recorded file, if there is one, its name."""
        if self.recording.exists():
            self.recording.replace(self.file)
            self._remove_unused(time.time())

    def drop(self) -> None:
        """After any other exit: remove what was recorded."""
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
