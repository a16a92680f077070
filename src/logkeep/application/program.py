"""The program of an application: `run`, `send` and `state`.

`run` ends with 0 after SIGTERM or SIGINT: every command that got a reply is durable, and copies are begun again or
recorded as failed at the next start. Errors have the exit codes of `logkeep`.
"""

import argparse
import logging
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from logkeep.application.context import HandledApplication
from logkeep.config.option_types import Size
from logkeep.errors import LogkeepError, UsageError
from logkeep.repository.chain.commits import SourceRef

KILL_AT, HOLD_AT = "LOGKEEP_KILL_AT", "LOGKEEP_HOLD_AT"
"""For tests of crashes: `PARTITION/STEP`, where the process kills itself, or a thread of it waits for ever."""
_SIGNAL_POLL_S = 0.25


def execute(application: HandledApplication, arguments: Sequence[str]) -> int:
    """Run the program; its exit code."""
    try:
        given = _parser(application).parse_args(arguments)
        code: int = given.function(application, given)
    except LogkeepError as error:
        sys.stderr.write(f"error: {error}\n  try: {error.remedy}\n")
        return error.exit_code
    return code


def _parser(application: HandledApplication) -> argparse.ArgumentParser:
    parser = _Parser(prog=Path(sys.argv[0]).name, description=f"The application {application.name}.")
    verbs = parser.add_subparsers(required=True, metavar="run|send|state")
    run = verbs.add_parser("run", help="process commands until SIGTERM")
    run.set_defaults(function=_run)
    _data(run)
    run.add_argument(
        "--repository", metavar="URL", help="back up to this repository; default: that of logkeep's settings"
    )
    run.add_argument("--source", metavar="NAME", help="the name of the application there; default: its own name")
    run.add_argument("--snapshot-every", metavar="SIZE", type=_size, default=64 << 20, help="of log (64MiB)")
    run.add_argument("--max-unarchived", metavar="SIZE", type=_size, default=1 << 30, help="of log kept (1GiB)")
    send = verbs.add_parser("send", help="send a command and print its reply")
    send.set_defaults(function=_send)
    send.add_argument("name", metavar="COMMAND")
    send.add_argument("key", metavar="KEY")
    send.add_argument("value", metavar="JSON", nargs="?", default="null")
    _data(send)
    send.add_argument("--request", metavar="ID", help="a repeated request with the same id is processed once")
    send.add_argument("--timeout", metavar="SECONDS", type=float, default=30.0)
    state = verbs.add_parser("state", help="print the value of a key")
    state.set_defaults(function=_state)
    state.add_argument("key", metavar="KEY")
    _data(state)
    return parser


class _Parser(argparse.ArgumentParser):
    """Its errors are ours."""

    def error(self, message: str) -> "None":  # type: ignore[override] # argparse says NoReturn
        raise UsageError(message, remedy=f"see `{self.prog} --help`")


def _data(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", metavar="DIR", type=Path, required=True, help="the data directory")


def _size(text: str) -> int:
    try:
        return Size().parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _run(application: HandledApplication, given: argparse.Namespace) -> int:
    from logkeep.application.control import ControlServer  # noqa: PLC0415 - `send` needs no runtime
    from logkeep.application.data_directory import DirectoryLock, open_directory  # noqa: PLC0415 - as above
    from logkeep.application.partition_worker import KeepingLimits  # noqa: PLC0415 - as above
    from logkeep.application.runtime import Runtime, RuntimeOptions  # noqa: PLC0415 - as above
    from logkeep.model.time import utc_now  # noqa: PLC0415 - as above

    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.WARNING)
    signals, ended = _caught_signals(), threading.Event()
    given.data.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = DirectoryLock(given.data)
    try:
        directory = open_directory(given.data, application.name, application.partitions, utc_now())
        limits = KeepingLimits(given.snapshot_every, given.max_unarchived)
        options = RuntimeOptions(limits, _open_place(application, given), _watch(os.environ))
        runtime = Runtime(application, directory, options)
        runtime.ended = ended
        runtime.start()
        server = ControlServer(runtime, given.data)
        _say(f"{application.name} runs with {application.partitions} partitions in {given.data}")
        _wait_for_end(signals, ended)
        server.close()
        runtime.stop()
    finally:
        lock.release()
    failure = runtime.failure()
    if isinstance(failure, LogkeepError):
        raise failure
    return 0 if failure is None else 1


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


def _open_place(application: HandledApplication, given: argparse.Namespace) -> Callable[[], SourceRef] | None:
    """Opens the source of the flags, or of logkeep's own settings; None if neither names a repository."""
    url, source = given.repository, given.source
    if url is None:
        from logkeep.config.load import load  # noqa: PLC0415 - only without the flag
        from logkeep.config.options import REPO, SOURCE  # noqa: PLC0415 - as above
        from logkeep.config.places import standard_places  # noqa: PLC0415 - as above

        settings = load({}, os.environ, standard_places(os.environ, directory=Path.cwd())).settings
        url, source = settings[REPO], source or settings[SOURCE]
    if not url:
        return None

    def opened() -> SourceRef:
        from logkeep.repository.access import open_repository  # noqa: PLC0415 - the first backup opens it
        from logkeep.store.access import open_store  # noqa: PLC0415 - as above
        from logkeep.store.retrying import RetryingStore, RetryLimits  # noqa: PLC0415 - as above

        return open_repository(RetryingStore(open_store(url), RetryLimits())).place(source or application.name)

    return opened


def _watch(environ: Mapping[str, str]) -> Callable[[int, str], None]:
    kill_at, hold_at = environ.get(KILL_AT), environ.get(HOLD_AT)

    def watch(number: int, step: str) -> None:
        if f"{number}/{step}" == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        if f"{number}/{step}" == hold_at:
            threading.Event().wait()

    return watch


def _send(_application: HandledApplication, given: argparse.Namespace) -> int:
    from logkeep.application.control import SendRequest  # noqa: PLC0415 - `--help` needs no client
    from logkeep.application.control_client import ControlClient  # noqa: PLC0415 - as above

    try:
        value = msgspec.json.decode(given.value.encode())
    except (msgspec.MsgspecError, RecursionError) as error:
        raise UsageError(f"{given.value[:60]!r} is not JSON ({error})", remedy="quote it for your shell") from error
    sent = SendRequest(given.name, given.key, value, given.request, given.timeout)
    reply = ControlClient(given.data).send(sent)
    _say(msgspec.json.encode(reply).decode())
    return 1 if isinstance(reply, dict) and set(reply) == {"error"} else 0


def _state(_application: HandledApplication, given: argparse.Namespace) -> int:
    from logkeep.application.data_directory import read_directory  # noqa: PLC0415 - as above
    from logkeep.checkpoint.routing import partition_of  # noqa: PLC0415 - as above
    from logkeep.checkpoint.state.sqlite_state import read_key  # noqa: PLC0415 - as above

    directory = read_directory(given.data)
    number = partition_of(given.key, directory.document.partitions)
    _, data = read_key(directory.partition(number) / "state.sqlite", given.key)
    _say("null" if data is None else msgspec.json.encode(msgspec.msgpack.decode(data)).decode())
    return 0 if data is not None else 1


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
