"""The program of an application: `run`, `send` and `state`, with the log in files or on Kafka.

`run` ends with 0 after SIGTERM or SIGINT: every command that got a reply is durable, and copies are begun again or
recorded as failed at the next start. Errors have the exit codes of `logkeep`.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from logkeep.application.client_config import client_config
from logkeep.application.context import HandledApplication
from logkeep.config.option_types import Size
from logkeep.errors import LogkeepError, UsageError
from logkeep.model.printable_text import printable, safe_json

if TYPE_CHECKING:
    from logkeep.application.kafka_log.client import KafkaClient


def execute(application: HandledApplication, arguments: Sequence[str], mistakes: Sequence[UsageError] = ()) -> int:
    """Run the program; its exit code. `mistakes` in the user's code are reported as errors too."""
    try:
        for mistake in mistakes:
            raise mistake
        given = _parser(application).parse_args(arguments)
        code: int = given.function(application, given)
    except LogkeepError as error:
        sys.stderr.write(f"error: {printable(str(error))}\n  try: {printable(error.remedy)}\n")
        return error.exit_code
    return code


def _parser(application: HandledApplication) -> argparse.ArgumentParser:
    parser = _Parser(prog=Path(sys.argv[0]).name, description=f"The application {application.name}.")
    verbs = parser.add_subparsers(required=True, metavar="run|send|state")
    run = verbs.add_parser("run", help="process commands until SIGTERM")
    run.set_defaults(function=_run)
    _log_options(run, required=True)
    run.add_argument(
        "--repository", metavar="URL", help="back up to this repository; default: that of logkeep's settings"
    )
    run.add_argument("--source", metavar="NAME", help="the name of the application there; default: its own name")
    run.add_argument(
        "--snapshot-every", metavar="SIZE", type=_size, default=64 << 20, help="a snapshot after this much log (64MiB)"
    )
    run.add_argument(
        "--max-unarchived",
        metavar="SIZE",
        type=_size,
        default=1 << 30,
        help="keep at most this much log for the next backup (1GiB)",
    )
    send = verbs.add_parser("send", help="send a command and print its reply")
    send.set_defaults(function=_send)
    send.add_argument("name", metavar="COMMAND")
    send.add_argument("key", metavar="KEY")
    send.add_argument("value", metavar="JSON", nargs="?", default="null")
    _log_options(send)
    send.add_argument("--request", metavar="ID", help="a repeated request with the same id is processed once")
    send.add_argument("--timeout", metavar="SECONDS", type=float, default=30.0)
    state = verbs.add_parser("state", help="print the value of a key")
    state.set_defaults(function=_state)
    state.add_argument("key", metavar="KEY")
    _log_options(state)
    return parser


class _Parser(argparse.ArgumentParser):
    """Its errors are ours."""

    def error(self, message: str) -> "None":  # type: ignore[override] # argparse says NoReturn
        raise UsageError(message, remedy=f"see `{self.prog} --help`")


def _log_options(parser: argparse.ArgumentParser, *, required: bool = False) -> None:
    parser.add_argument("--data", metavar="DIR", type=Path, required=required, help="the data directory")
    parser.add_argument("--bootstrap-servers", metavar="HOSTS", help="the log is on this Kafka cluster")
    parser.add_argument("--client-config", metavar="FILE", type=Path, help="properties of librdkafka, one per line")


def _size(text: str) -> int:
    try:
        return Size().parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _run(application: HandledApplication, given: argparse.Namespace) -> int:
    from logkeep.application.application_process import run  # noqa: PLC0415 - `send` needs no runtime

    return run(application, given)


def _send(application: HandledApplication, given: argparse.Namespace) -> int:
    from logkeep.application.control import SendRequest  # noqa: PLC0415 - `--help` needs no client
    from logkeep.application.control_client import ControlClient  # noqa: PLC0415 - as above

    try:
        value = msgspec.json.decode(given.value.encode())
    except (msgspec.MsgspecError, RecursionError) as error:
        raise UsageError(f"{given.value[:60]!r} is not JSON ({error})", remedy="quote it for your shell") from error
    sent = SendRequest(given.name, given.key, value, given.request, given.timeout)
    if given.bootstrap_servers:
        reply = _kafka_client(application, given).send(sent)
    else:
        reply = ControlClient(_directory(given)).send(sent)
    _print_line(msgspec.json.encode(reply).decode())
    return 1 if isinstance(reply, dict) and set(reply) == {"error"} else 0


def _kafka_client(application: HandledApplication, given: argparse.Namespace) -> "KafkaClient":
    config = client_config(given.bootstrap_servers, given.client_config)
    from logkeep.application.kafka_log.client import KafkaClient  # noqa: PLC0415 - as above

    return KafkaClient(config, application.name)


def _directory(given: argparse.Namespace) -> Path:
    if given.data is None:
        remedy = "pass --data DIR, or --bootstrap-servers HOSTS if its log is on Kafka"
        raise UsageError("neither --data nor --bootstrap-servers is given", remedy=remedy)
    found: Path = given.data
    return found


def _state(application: HandledApplication, given: argparse.Namespace) -> int:
    if given.bootstrap_servers:
        data = _kafka_client(application, given).state(given.key)
    else:
        data = _stored(_directory(given), given.key)
    _print_line("null" if data is None else msgspec.json.encode(msgspec.msgpack.decode(data)).decode())
    return 0 if data is not None else 1


def _stored(path: Path, key: str) -> bytes | None:
    from logkeep.application.data_directory import read_directory  # noqa: PLC0415 - as above
    from logkeep.checkpoint.routing import partition_of  # noqa: PLC0415 - as above
    from logkeep.checkpoint.state.sqlite_state import read_key  # noqa: PLC0415 - as above

    directory = read_directory(path)
    number = partition_of(key, directory.document.partitions)
    state = directory.partition(number) / "state.sqlite"
    if not state.exists():
        raise UsageError(
            f"partition {number} has no state yet",
            subject=str(path),
            remedy="start the application: `run` makes the state from the log",
        )
    return read_key(state, key)[1]


def _print_line(line: str) -> None:
    sys.stdout.write(f"{safe_json(line)}\n")
    sys.stdout.flush()
