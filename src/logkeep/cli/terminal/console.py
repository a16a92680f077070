"""The two streams. stdout is the answer; progress, logs, questions and errors go to stderr.

Whatever is written to stderr is redacted on the way. At most one live line (the progress bar) stands at the bottom of
stderr; `note` steps around it. A reader who closes the pipe has seen enough: that is not an error. A disk that cannot
take the answer is.
"""

import os
import shutil
import sys
from collections.abc import Mapping
from typing import TextIO

from logkeep.cli.terminal.text import TerminalStyle
from logkeep.errors import Declined, LogkeepError
from logkeep.model.redaction import redact


class Console:
    """Where a run prints. Streams and abilities are handed in; `standard_console` looks at the real ones."""

    def __init__(
        self, out: TextIO, err: TextIO, *, look: TerminalStyle, err_look: TerminalStyle, interactive: bool, read: TextIO
    ) -> None:
        self.look = look
        """Of stdout."""
        self.err_look = err_look
        self.interactive = interactive
        """Somebody can be asked: stdin and stderr are terminals."""
        self._out, self._err, self._read = out, err, read
        self._live = ""

    def answer(self, text: str) -> None:
        """Print the whole answer to stdout and make sure it got there."""
        try:
            self._out.write(text if text.endswith("\n") or not text else text + "\n")
            self._out.flush()
        except BrokenPipeError:
            _silence(self._out)
        except OSError as error:
            _silence(self._out)
            raise LogkeepError(
                f"the answer could not be written: {error.strerror}",
                subject="stdout",
                remedy="free space and run again",
            ) from error

    def note(self, text: str, *, redacted: bool = False) -> None:
        """Print a line to stderr, redacted, above the live line if there is one.

        JSON is redacted value by value by who made it and passes as it is: hiding the rest of a line would break it.
        """
        safe = self.err_look.text(text if redacted else redact(text))
        self._write_err(f"{self._erase()}{safe}\n{self._live}")

    def live(self, line: str) -> None:
        """Show or replace the live line; empty removes it. Only for terminals."""
        erase = self._erase()
        self._live = self.err_look.text(redact(line))
        self._write_err(f"{erase}{self._live}")

    def warn(self, text: str) -> None:
        self.note(f"{self.err_look.paint('warning:', 'yellow')} {text}")

    def confirm(self, question: str, *, flag: str = "--yes", typed: str = "") -> None:
        """Return when the user agrees. Raises Declined otherwise, or when there is nobody to ask.

        With `typed` a plain yes is not enough: that very text has to be typed (the name of what will be overwritten).
        """
        if not self.interactive:
            raise Declined(
                f"cannot ask: {question}", remedy=f"nothing was changed; run it on a terminal, or pass {flag}"
            )
        wanted = f"type {typed} to go on" if typed else "[y/N]"
        self._write_err(self._erase() + self.err_look.text(redact(f"{question} {wanted} ")))
        reply = self._read.readline().strip()
        if reply != typed if typed else reply.lower() not in {"y", "yes"}:
            raise Declined("stopped at the question", remedy="nothing was changed")

    def _erase(self) -> str:
        return "\r\x1b[K" if self._live else ""

    def _write_err(self, text: str) -> None:
        try:
            self._err.write(text)
            self._err.flush()
        except OSError:
            _silence(self._err)  # nobody reads our errors; the exit code still tells


def standard_console(
    environ: Mapping[str, str], color: str = "auto", *, stdin: TextIO | None = None, force_text: bool = False
) -> Console:
    """The console of this process. `color` is auto, always or never; `force_text` tells that stdout is for machines."""
    out, err, read = sys.stdout, sys.stderr, stdin or sys.stdin
    interactive = _is_terminal(read) and _is_terminal(err)
    look = _look(out, environ, color, plain=force_text)
    return Console(out, err, look=look, err_look=_look(err, environ, color), interactive=interactive, read=read)


def _look(stream: TextIO, environ: Mapping[str, str], color: str, *, plain: bool = False) -> TerminalStyle:
    terminal = _is_terminal(stream)
    return TerminalStyle(
        colour=not plain and use_colour(color, environ, terminal=terminal),
        unicode=speaks_unicode(stream, environ),
        width=shutil.get_terminal_size().columns if terminal else None,
    )


def use_colour(color: str, environ: Mapping[str, str], *, terminal: bool) -> bool:
    """An explicit wish wins; else only on a terminal that can, and never when NO_COLOR is set to anything."""
    if color != "auto":
        return color == "always"
    return terminal and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def speaks_unicode(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether the locale says UTF-8 and the stream can write it.

    Python quietly turns the C locale into UTF-8 (and sets LC_CTYPE=C.UTF-8 to say so), so the stream's encoding alone
    would promise more than the terminal holds.
    """
    if (stream.encoding or "").lower().replace("-", "") != "utf8":
        return False
    coerced = environ.get("LC_CTYPE") == "C.UTF-8" and not environ.get("LC_ALL")
    names = ("LC_ALL", "LANG") if coerced else ("LC_ALL", "LC_CTYPE", "LANG")
    locale = next((environ[name] for name in names if environ.get(name)), "")
    return "utf8" in locale.lower().replace("-", "")


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # closed before we started
        return False


def _silence(stream: TextIO) -> None:
    """Let later writes and the interpreter's last flush go nowhere instead of raising again."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
    except (OSError, ValueError):
        return
