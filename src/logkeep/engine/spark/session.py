"""One Spark session: its JVM, its log, its scratch directory, and their end.

The JVM's output goes to a log file in the cache directory; it is removed when the run succeeds. Nothing is written to
the working directory or the home directory. The JVM and its workers start in the scratch directory, which only this
user can enter: a file that another user left in the working directory is never imported.
"""

import logging
import os
import secrets
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import traceback
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from logkeep import errors
from logkeep.engine.spark.failures import start_failure
from logkeep.engine.spark.jvm.class_archive import ClassArchive, class_archive
from logkeep.engine.spark.jvm.java import find_java
from logkeep.engine.spark.jvm.processes import descendants, family_with_argument, kill_all
from logkeep.engine.spark.private_files import append_private, make_private
from logkeep.engine.spark.protection import SECRET_VARIABLE, makes_own_secret, protection
from logkeep.engine.spark.settings import SparkSettings, absolute_paths, is_local, session_conf
from logkeep.engine.stop import Background
from logkeep.errors import ConfigError, EngineUnavailable
from logkeep.model.cache import archive_dir, log_dir

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_PATH_VARIABLES = ("JAVA_HOME", "SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR")
_log = logging.getLogger(__name__)
_LAUNCHER_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
_TAIL_LINES = 15
_STOP_S = 60.0
_REMEDY = f"{EngineUnavailable.remedy}, or pass --engine inline"
_HURRIED_STOP_S = 1.0
_RECORDING_S = 300.0
"""A JVM that records writes its class archive when it ends. Killed before, the next run has to record again."""


class EngineSession:
    """Not started by its constructor: `start` does that, in any thread, and `abort` ends a start from another."""

    def __init__(self, settings: SparkSettings) -> None:
        self._settings = settings
        self._token = secrets.token_hex(8)
        self.scratch = Path(tempfile.gettempdir()) / f"logkeep-{self._token}"
        """The scratch directory, which only this user can enter, and which workers on this machine see."""
        self._aborted = False
        self._fixed: dict[str, str] = {}
        self._gateway: Any = None
        self._archive: ClassArchive | None = None
        self._spark: SparkSession | None = None
        self.log = log_dir(settings.cache_dir) / f"spark-{self._token}.log"
        self.keep_log = settings.keep_log

    @property
    def spark(self) -> "SparkSession":
        assert self._spark is not None, "the session was not started"  # noqa: S101  # a programming error
        return self._spark

    @property
    def records_classes(self) -> bool:
        """The JVM started without a class archive, which makes it slow, and writes one when it ends."""
        return self._archive is None or not self._archive.exists

    def start(self) -> None:
        """Start the JVM and the session. Raises `EngineUnavailable`, with the end of the JVM's log as a note, and
        UsageError for settings that would weaken its protection."""
        given = self._settings
        self._fixed = protection(given.master, given.conf, secret_named=given.secret is not None)
        try:
            java = find_java(os.environ)
        except EngineUnavailable as error:
            error.remedy = _REMEDY
            raise
        import pyspark  # noqa: PLC0415  # slow to import, and only needed when Spark is

        home = Path(pyspark.__file__).parent
        directory = archive_dir(self._settings.cache_dir)
        archive = class_archive(directory, java, home, pyspark.__version__, self._token)
        self._archive = self.make_directories(archive)
        if self._archive is None:
            return self._launch(home, [])
        if self._archive.exists:
            with suppress(EngineUnavailable):
                return self._launch(home, self._archive.java_options())
            # Whatever was wrong: Spark can start without the archive.
            if not self._aborted:
                self._archive.distrust()
        return self._launch(home, self._archive.java_options())

    def make_directories(self, archive: ClassArchive) -> ClassArchive | None:
        """Scratch, log and cache. None if others can change the cache: the archive only makes starts faster."""
        try:
            self.scratch.mkdir(mode=0o700)
            return self._prepared(archive)
        except OSError as error:
            raise EngineUnavailable(
                f"the cache directory cannot be used ({error.strerror})",
                subject=str(self._settings.cache_dir),
                remedy="set LOGKEEP_CACHE_DIR to a directory that can be written",
            ) from error

    def _prepared(self, archive: ClassArchive) -> ClassArchive | None:
        try:
            archive.prepare()
        except ConfigError as error:
            _log.warning("Java classes are neither loaded nor stored: %s; %s", error, error.remedy)
            self.log = self.scratch.with_suffix(".log")
            return None
        make_private(self.log.parent)
        return archive

    def _launch(self, home: Path, java_options: list[str]) -> None:
        self._refuse_if_aborted()
        from pyspark import SparkConf, SparkContext  # noqa: PLC0415
        from pyspark.java_gateway import launch_gateway  # noqa: PLC0415
        from pyspark.sql import SparkSession  # noqa: PLC0415

        settings = replace(self._settings, conf=absolute_paths(self._settings.conf, Path.cwd()))
        conf = session_conf(settings, self.scratch, self._token, java_options, self._fixed)
        if is_local(self._settings.master):
            conf.setdefault("spark.executorEnv.PYTHONPATH", os.pathsep.join(_import_path()))
        spark_conf = SparkConf(loadDefaults=False).setAll(list(conf.items()))
        try:
            with append_private(self.log) as log, _environment(self._environment(home)):
                popen = {"stdout": log, "stderr": log, "process_group": 0, "cwd": self.scratch}
                self._gateway = launch_gateway(spark_conf, popen)  # type: ignore[no-untyped-call]  # pyspark left it untyped
                context = SparkContext(conf=spark_conf, gateway=self._gateway)
            _log_broken_connections(context)
            self._spark = SparkSession.builder.getOrCreate()
            if not is_local(self._settings.master):
                context.addPyFile(str(package_zip(self.scratch)))
        except Exception as error:
            # PySpark and py4j have errors of their own, and any other where the JVM stops the context meanwhile: a
            # master that refuses the secret.
            self._end_jvm(patience_s=_HURRIED_STOP_S)
            _close_failed_process(error)
            raise self._not_started(error) from error

    def _refuse_if_aborted(self) -> None:
        if self._aborted:
            raise EngineUnavailable("the start was aborted", subject=self._settings.master)

    def _environment(self, home: Path) -> dict[str, str]:
        variables = {
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_DIRS": str(self.scratch),
            "SPARK_LAUNCHER_OPTS": _LAUNCHER_OPTIONS,
            "PYTHONSAFEPATH": "1",
            "PYSPARK_DRIVER_PYTHON": sys.executable,  # plans reads of data sources, also for a cluster
        }
        variables |= {name: str(Path(os.environ[name]).absolute()) for name in _PATH_VARIABLES if os.environ.get(name)}
        if self._settings.secret is not None and not makes_own_secret(self._settings.master):
            variables[SECRET_VARIABLE] = self._settings.secret.reveal()
        if is_local(self._settings.master):
            variables |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        return variables

    def _not_started(self, error: Exception) -> EngineUnavailable:
        self._refuse_if_aborted()
        self.keep_log = True
        lines = self.log.read_text(errors="replace").splitlines()
        unavailable = EngineUnavailable(
            f"Spark did not start: {start_failure(error, lines)}",
            subject=self._settings.master,
            remedy=f"see {self.log}; {_REMEDY}",
        )
        unavailable.add_note("\n".join(lines[-_TAIL_LINES:]))
        return unavailable

    def abort(self) -> None:
        """Make a start that is under way in another thread fail; `close` must follow."""
        self._aborted = True
        kill_all(family_with_argument(os.getpid(), f"spark.logkeep.session={self._token}"))

    def close(self, *, hurry: bool = False) -> None:
        """End the session, the JVM and all workers. With `hurry` within about three seconds."""
        workers = descendants(self._gateway.proc.pid) if self._gateway else []
        if self._spark is not None:
            Background(self._spark.stop).wait(end_patience_s(hurry=hurry, recording=False))
            self._spark = None
        recording = self._archive is not None and self.records_classes
        exit_code = self._end_jvm(patience_s=end_patience_s(hurry=hurry, recording=recording))
        kill_all(workers)
        if self._archive is not None and exit_code == 0:
            self._archive.keep()
        self._clean_up()

    def _end_jvm(self, *, patience_s: float) -> int:
        """Close the JVM's standard input, which ends it; otherwise kill it and its child processes."""
        from pyspark import SparkContext  # noqa: PLC0415

        if self._gateway is None:  # it never answered, but may still be starting
            kill_all(family_with_argument(os.getpid(), f"spark.logkeep.session={self._token}"))
            return -1
        process: subprocess.Popen[bytes] = self._gateway.proc
        self._gateway.shutdown()
        self._gateway = None
        SparkContext._gateway = SparkContext._jvm = None  # otherwise the next session would use this JVM
        if process.stdin:
            process.stdin.close()
        try:
            return process.wait(patience_s)
        except subprocess.TimeoutExpired:
            family = descendants(process.pid)
            process.kill()
            kill_all(family)
            return process.wait()

    def _clean_up(self) -> None:
        if self._archive is not None:
            self._archive.drop()
        shutil.rmtree(self.scratch, ignore_errors=True)
        if not self.keep_log:
            self.log.unlink(missing_ok=True)


def end_patience_s(*, hurry: bool, recording: bool) -> float:
    """How long a session, and then its JVM, may take to end. Pure."""
    if hurry:
        return _HURRIED_STOP_S
    return _RECORDING_S if recording else _STOP_S


def _log_broken_connections(context: "SparkContext") -> None:
    """PySpark's server for accumulators prints a traceback on standard error when the JVM is killed."""
    server: Any = context._accumulatorServer
    server.handle_error = lambda *_: _log.debug("the connection for accumulators broke", exc_info=True)


def _close_failed_process(error: Exception) -> None:
    """PySpark has the process of a JVM that did not start in a local variable only, with its input open."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if isinstance(process := frame.f_locals.get("proc"), subprocess.Popen):
            with suppress(OSError):
                if process.stdin is not None:
                    process.stdin.close()
            process.poll()


def _import_path() -> list[str]:
    """The import path of this process, so that local workers import the same code."""
    standard = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
    # An empty entry is the working directory, from which workers must not import.
    paths = [str(Path(entry).absolute()) for entry in sys.path if entry]
    return [path for path in paths if path not in standard and Path(path).exists() and "lib-dynload" not in path]


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Set variables that PySpark reads only from the environment, then restore the earlier values."""
    earlier = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in earlier.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def package_zip(directory: Path) -> Path:
    """Pack logkeep, as it is imported here, into `directory` for workers on other hosts; with its data source."""
    package = Path(errors.__file__).parent
    target = directory / "logkeep.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
        for root in (package, package.with_name("pyspark_logkeep")):
            for file in sorted(root.rglob("*")):
                inside = file.relative_to(root.parent)
                if file.is_file() and not {"__pycache__", "compiled"} & set(inside.parts):
                    packed.write(file, inside)
    return target
