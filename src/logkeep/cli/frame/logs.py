"""Logs: written with the standard library's `logging` everywhere, rendered and redacted here, by structlog.

Modules below say `logging.getLogger(__name__).info("retrying", extra={"attempt": 2})`. That costs nothing when nobody
listens; structlog, which takes a fifth of a second to load, is only loaded for the first line that is really written.
Redaction sits at the root: events, extra values and exception texts, of our code and of libraries, as text and JSON.
"""

import logging
import os
from collections.abc import MutableMapping
from pathlib import Path
from typing import IO, Any

from logkeep.cli.terminal.console import Console
from logkeep.errors import ConfigError
from logkeep.model.redaction import redact, redact_values

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
OURS = "logkeep"


def choose_level(level: str | None, *, quiet: bool, verbose: int, to_file: bool) -> str:
    """-q and -v are said for this call, so they win over a configured level."""
    if quiet:
        return "error"
    if verbose:
        return "info" if verbose == 1 else "debug"
    return level or ("info" if to_file else "warning")


def set_up_logs(
    console: Console, *, level: str, form: str, file: Path | None, to_stdout: bool = False
) -> logging.Handler:
    """Send all logs of this process to the file, else to stderr (or stdout, where a program offers that).

    Raises ConfigError when the file cannot be opened.

    Libraries are kept at warning whatever the level: their debug output tells more than anybody wants, keys included.
    """
    handler = _FileHandler(file) if file else _ConsoleHandler(console, to_stdout=to_stdout)
    handler.setFormatter(_RedactingFormatter(form))
    handler.setLevel(_LEVELS[level])
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(logging.WARNING, _LEVELS[level]))
    logging.getLogger(OURS).setLevel(_LEVELS[level])
    logging.captureWarnings(True)
    return handler


def take_down_logs(handler: logging.Handler) -> None:
    root = logging.getLogger()
    if handler in root.handlers:
        root.removeHandler(handler)
    handler.close()


class _ConsoleHandler(logging.Handler):
    """Through the console, so that a log line steps around the progress bar."""

    def __init__(self, console: Console, *, to_stdout: bool) -> None:
        super().__init__()
        self._console, self._to_stdout = console, to_stdout

    def emit(self, record: logging.LogRecord) -> None:
        line = self.format(record)
        if self._to_stdout:
            self._console.answer(line)
        else:
            self._console.note(line, redacted=True)


class _FileHandler(logging.StreamHandler[IO[str]]):
    def __init__(self, path: Path) -> None:
        super().__init__(open_private(path))

    def close(self) -> None:
        self.stream.close()
        super().close()


def open_private(path: Path) -> IO[str]:
    """Append to a file that is made with mode 0600; never through a link that somebody left in its place."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ConfigError(
            f"the log file cannot be written: {error.strerror}", subject=str(path), remedy="choose another --log-file"
        ) from error
    return os.fdopen(descriptor, "a", encoding="utf-8", errors="backslashreplace")


class _RedactingFormatter(logging.Formatter):
    """Loads structlog when the first line is written."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self._form = form
        self._inner: logging.Formatter | None = None

    def format(self, record: logging.LogRecord) -> str:
        if self._inner is None:
            self._inner = _structlog_formatter(self._form)
        # Values were redacted as values; a secret that came together only by joining them is caught here.
        line = self._inner.format(record)
        return line if self._form == "json" else redact(line)


def _structlog_formatter(form: str) -> logging.Formatter:
    import structlog  # noqa: PLC0415  see the head of this file

    shared: list[Any] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        _redact_event,
    ]
    last = structlog.processors.JSONRenderer() if form == "json" else _as_line
    structlog.configure(
        processors=[structlog.stdlib.PositionalArgumentsFormatter(), *shared[:2], *shared[3:],
                    structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )  # fmt: skip
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared, processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, last]
    )


def _redact_event(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    kept = {key: value for key, value in event.items() if key.startswith("_")}
    shown = redact_values({key: value for key, value in event.items() if not key.startswith("_")})
    assert isinstance(shown, dict)  # noqa: S101  a mapping in is a mapping out
    event.clear()
    event.update(shown, **kept)
    return event


def _as_line(_logger: object, _method: str, event: MutableMapping[str, Any]) -> str:
    """`2026-11-15T10:30:00Z warning  retrying  attempt=2 [logkeep.store]`, the traceback below it."""
    moment, level = event.pop("timestamp", ""), event.pop("level", "")
    name, text, trace = event.pop("logger", ""), event.pop("event", ""), event.pop("exception", "")
    extra = "".join(f" {key}={value}" for key, value in sorted(event.items()))
    return f"{moment} {level:<7} {text}{extra} [{name}]" + (f"\n{trace}" if trace else "")
