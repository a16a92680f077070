"""Runs an application until SIGTERM or SIGINT: with its log in files, or as one process of several with it on Kafka."""

import argparse
import logging
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from logkeep.application.client_config import client_config
from logkeep.application.context import HandledApplication
from logkeep.application.control import ControlServer
from logkeep.application.data_directory import DirectoryLock, open_directory
from logkeep.application.partition_worker import KeepingLimits
from logkeep.application.runtime import Runtime
from logkeep.application.worker_factory import RuntimeOptions
from logkeep.checkpoint.durable_directory import make_durable_directory
from logkeep.errors import LogkeepError, UsageError
from logkeep.model.ids import source_name
from logkeep.model.printable_text import printable
from logkeep.model.process_memory import forbid_core_dumps
from logkeep.model.time import utc_now
from logkeep.repository.chain.commits import SourceRef
from logkeep.store.address import parse_address

KILL_AT, HOLD_AT = "LOGKEEP_KILL_AT", "LOGKEEP_HOLD_AT"
"""For tests of crashes: `PARTITION/STEP`, where the process kills itself, or a thread of it waits forever."""
_SIGNAL_POLL_S = 0.25


class _Running(Protocol):
    ended: threading.Event

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def failure(self) -> BaseException | None: ...


def run(application: HandledApplication, given: argparse.Namespace) -> int:
    """The exit code. Raises LogkeepError."""
    _make_data_directory(given.data)
    # Files that are created without a mode are for this user alone, as with the programs of logkeep.
    os.umask(0o077)
    forbid_core_dumps()
    _write_logs()
    signals = _caught_signals()
    lock = DirectoryLock(given.data)
    try:
        limits = KeepingLimits(given.snapshot_every, given.max_unarchived)
        source, opened = _source(application, given)
        options = RuntimeOptions(limits, opened, source, _watch(os.environ))
        work = _run_on_kafka if given.bootstrap_servers else _run_in_files
        failure = work(application, given, options, signals)
    finally:
        lock.release()
    if isinstance(failure, LogkeepError):
        raise failure
    return 0 if failure is None else 1


def _write_logs() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(LogLines("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.WARNING)


class LogLines(logging.Formatter):
    """A record begins one line of the log; the lines of its traceback are indented."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - named by logging
        record.message = printable(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802 - as above
        return "\n".join(f"  {printable(line)}" for line in super().formatException(ei).split("\n"))


def _make_data_directory(path: Path) -> None:
    try:
        make_durable_directory(path)
    except OSError as error:
        what = f"the data directory cannot be made ({error.strerror})"
        raise UsageError(what, subject=str(path), remedy="name a directory, or where one can be made") from error


def _run_in_files(
    application: HandledApplication,
    given: argparse.Namespace,
    options: RuntimeOptions,
    signals: "queue.SimpleQueue[int]",
) -> BaseException | None:
    directory = open_directory(given.data, application.name, application.partitions, utc_now())
    runtime = Runtime(application, directory, options)
    runtime.start()
    server = ControlServer(runtime, given.data)
    return _until_stopped(application, runtime, signals, f"in {given.data}", server.close)


def _run_on_kafka(
    application: HandledApplication,
    given: argparse.Namespace,
    options: RuntimeOptions,
    signals: "queue.SimpleQueue[int]",
) -> BaseException | None:
    config = client_config(given.bootstrap_servers, given.client_config)
    from logkeep.application.kafka_log.current_application import ensure_application  # noqa: PLC0415 - a client
    from logkeep.application.kafka_log.group_runtime import GroupRuntime  # noqa: PLC0415 - as above

    found = ensure_application(config, application.name, application.partitions)
    directory = open_directory(
        given.data, application.name, found.partitions, utc_now(), found.application, found.history
    )
    runtime = GroupRuntime(application, directory, config, found, options)
    runtime.start()
    return _until_stopped(application, runtime, signals, f"on {given.bootstrap_servers}", lambda: None)


def _until_stopped(
    application: HandledApplication,
    runtime: _Running,
    signals: "queue.SimpleQueue[int]",
    where: str,
    close: Callable[[], None],
) -> BaseException | None:
    sys.stdout.write(f"{application.name} runs with {application.partitions} partitions {where}\n")
    sys.stdout.flush()
    _wait_for_end(signals, runtime.ended)
    close()
    runtime.stop()
    return runtime.failure()


def _caught_signals() -> "queue.SimpleQueue[int]":
    """SIGTERM and SIGINT from now on. A handler may put into this queue while its own thread waits for it."""
    caught: queue.SimpleQueue[int] = queue.SimpleQueue()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _frame: caught.put(number))
    return caught


def _wait_for_end(signals: "queue.SimpleQueue[int]", ended: threading.Event) -> None:
    """Until a signal came or a partition cannot continue.

    The main thread wakes from time to time: the system may give a signal to another thread, and Python's handlers are
    called in the main thread only.
    """
    while not ended.is_set():
        with suppress(queue.Empty):
            signals.get(timeout=_SIGNAL_POLL_S)
            return


def _source(application: HandledApplication, given: argparse.Namespace) -> tuple[str, Callable[[], SourceRef] | None]:
    """The name of the source of the flags, or of logkeep's own settings, and what opens it.

    Empty and None if neither names a repository. Raises UsageError for names that could never be opened.
    """
    url, source = given.repository, given.source
    if url is None:
        from logkeep.config.load import load  # noqa: PLC0415 - only without the flag
        from logkeep.config.options import REPO, SOURCE  # noqa: PLC0415 - as above
        from logkeep.config.places import standard_places  # noqa: PLC0415 - as above

        settings = load({}, os.environ, standard_places(os.environ, directory=Path.cwd())).settings
        url, source = settings[REPO], source or settings[SOURCE]
    if not url:
        return "", None
    parse_address(url)
    name = source_name(source or application.name)

    def opened() -> SourceRef:
        from logkeep.repository.access import open_repository  # noqa: PLC0415 - the first backup opens it
        from logkeep.store.access import open_store  # noqa: PLC0415 - as above
        from logkeep.store.retrying import RetryingStore, RetryLimits  # noqa: PLC0415 - as above

        return open_repository(RetryingStore(open_store(url), RetryLimits())).place(name)

    return name, opened


def _watch(environ: Mapping[str, str]) -> Callable[[int, str], None]:
    kill_at, hold_at = environ.get(KILL_AT), environ.get(HOLD_AT)

    def watch(number: int, step: str) -> None:
        if f"{number}/{step}" == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        if f"{number}/{step}" == hold_at:
            threading.Event().wait()

    return watch
