"""A Kafka broker or a ZooKeeper server of this machine: what both have in common."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from logkeep.embedded.process import ServerProcess, run_tool

READY_S = 180.0
LOGGING_JARS = ("slf4j-api-*.jar", "log4j-slf4j2-impl-*.jar", "log4j-api-2*.jar", "log4j-core-2*.jar")
"""Spark's: they fit each other, so they come first in a class path."""
_LOG4J = """\
appender.out.type = Console
appender.out.name = out
appender.out.target = SYSTEM_ERR
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %p %m (%c)%n
rootLogger = WARN, out
"""


class EmbeddedServer(ABC):
    """A context manager: it starts the server, and stops it in every case."""

    def __init__(self, directory: Path, cache: Path) -> None:
        self.directory = directory
        self._cache = cache
        self._server: ServerProcess | None = None

    @property
    def log(self) -> Path:
        return self.directory / "server.log"

    @property
    def pid(self) -> int | None:
        return self._server.pid if self._server else None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self.stop()

    @abstractmethod
    def start(self) -> None:
        """Start, and return when the server answers; raises `ServerFailed`."""

    @abstractmethod
    def command(self, main_class: str, arguments: Sequence[str]) -> list[str]:
        """The command line of a Java program of this release, also of the server itself."""

    def check_running(self) -> None:
        """Raise `ServerFailed` if the server has ended by itself."""
        if self._server is not None:
            self._server.check_running()

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop()

    def kill(self) -> None:
        """SIGKILL."""
        if self._server is not None:
            self._server.kill()

    def java_tool(self, main_class: str, arguments: Sequence[str], typed: str = "") -> str:
        """Run one of Apache's own tools from the same jars with `typed` as its input; returns its output.

        Raises `ServerFailed` if it fails.
        """
        return run_tool(self.command(main_class, arguments), main_class, self.directory, typed)

    def write_logging(self) -> None:
        (self.directory / "log4j2.properties").write_text(_LOG4J)

    def jvm_options(self) -> list[str]:
        return [
            f"-Dlog4j2.configurationFile={self.directory / 'log4j2.properties'}",
            f"-Djava.io.tmpdir={self.directory}",
        ]
