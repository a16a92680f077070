"""The two output streams: the answer goes to stdout; progress, logs, questions and errors go to stderr.

What goes to stderr is redacted. At most one live line (the progress bar) is at the bottom of stderr; `note` prints
above it. A closed pipe on stdout is not an error; a full disk is.

`note`, `warn`, `live` and `confirm` take one line and escape all of it, newlines too: a name in it cannot control the
terminal or begin a line. Text of several lines goes through `answer` or `show`, which only the frame calls, with text
made of escaped values; colours and newlines are all that passes there.
"""

import os
import shutil
import sys
from collections.abc import Mapping
from typing import TextIO

from logkeep.cli.terminal.escaping import LONGEST, LONGEST_QUESTION, shown, without_controls
from logkeep.cli.terminal.messages import ENGLISH, Translation, language_of, message
from logkeep.cli.terminal.text import TerminalStyle
from logkeep.errors import Declined, UsageError
from logkeep.model.redaction import redact


class Console:
    """Where a run prints. Streams and styles are arguments; `standard_console` takes them from the process."""

    def __init__(
        self, out: TextIO, err: TextIO, *, look: TerminalStyle, err_look: TerminalStyle, interactive: bool, read: TextIO
    ) -> None:
        self.look = look
        """Style of stdout."""
        self.err_look = err_look
        self.interactive = interactive
        """The user can be asked: stdin and stderr are terminals."""
        self._out, self._err, self._read = out, err, read
        self._live = ""

    @property
    def is_read(self) -> bool:
        """A person reads stderr: it is a terminal."""
        return self.err_look.width is not None

    def answer(self, text: str) -> None:
        """Print the answer to stdout and flush it. Raises UsageError when it cannot be written."""
        safe = without_controls(text, colour=self.look.colour)
        try:
            self._out.write(safe if safe.endswith("\n") or not safe else safe + "\n")
            self._out.flush()
        except BrokenPipeError:
            silence(self._out)
        except OSError as error:
            silence(self._out)
            raise unwritten(error) from error

    @property
    def answers_a_person(self) -> bool:
        """Stdout is a terminal."""
        return self.look.width is not None

    def data(self, data: bytes) -> bool:
        """Write a part of a file to stdout, unchanged unless stdout is a terminal. False: its reader has left."""
        if self.answers_a_person:
            self.answer(data.decode(errors="replace"))
            return True
        try:
            self._out.flush()
            self._out.buffer.write(data)
            self._out.buffer.flush()
        except BrokenPipeError:
            silence(self._out)
            return False
        except OSError as error:
            silence(self._out)
            raise unwritten(error) from error
        return True

    def note(self, line: str) -> None:
        """Print a line to stderr, redacted and escaped, above the live line if there is one."""
        self._print_above(one_line(line))

    def show(self, text: str, *, redacted: bool = False) -> None:
        """Print finished lines to stderr: their values are escaped, and the text may have colours.

        The caller has redacted JSON value by value and passes `redacted`: redaction of a whole line would break it.
        """
        self._print_above(without_controls(text if redacted else redact(text), colour=self.err_look.colour))

    def live(self, line: str) -> None:
        """Show or replace the live line; empty removes it. Only for terminals: what is wider is cut off.

        A line that wraps could not be erased as a whole.
        """
        erase = self._erase()
        look = self.err_look
        text = look.text(one_line(line))
        self._live = text if look.width is None else look.clipped(text, look.width - 1)
        self._write_err(f"{erase}{self._live}")

    def warn(self, text: str, say: Translation = ENGLISH) -> None:
        label = self.err_look.paint(say(message("warning:")), "yellow")
        self._print_above(f"{label} {one_line(say.sentence(text))}")

    def confirm(self, question: str, *, flag: str = "--yes", typed: str = "") -> None:
        """Return when the user agrees. Raises Declined otherwise, or when there is no terminal to ask on.

        With `typed` a plain yes is not enough: the user has to type that text (the name of what will be overwritten).
        """
        if not self.interactive:
            raise Declined(
                f"this needs a confirmation: {question}",
                remedy=f"nothing was changed; run it on a terminal, or pass {flag}",
            )
        wanted = f"type {typed} to continue" if typed else "[y/N]"
        asked = f"{one_line(question, LONGEST_QUESTION)} {one_line(wanted, LONGEST_QUESTION)}"
        self._write_err(f"{self._erase()}{self.err_look.wrapped(self.err_look.text(asked))} ")
        reply = self._read.readline().strip()
        if reply != typed if typed else reply.lower() not in {"y", "yes"}:
            raise Declined("not confirmed", remedy="nothing was changed")

    def _print_above(self, safe: str) -> None:
        self._write_err(f"{self._erase()}{self.err_look.text(safe)}\n{self._live}")

    def _erase(self) -> str:
        return "\r\x1b[K" if self._live else ""

    def _write_err(self, text: str) -> None:
        try:
            self._err.write(text)
            self._err.flush()
        except OSError:
            silence(self._err)  # stderr is closed; the exit code still reports the result


def unwritten(error: OSError) -> UsageError:
    """The error for an answer that stdout did not take."""
    what = f"the answer could not be written: {error.strerror}"
    return UsageError(what, subject="stdout", remedy="free space and run again")


def one_line(text: str, longest: int = LONGEST) -> str:
    """A line that may contain values from outside: redacted, escaped, shortened."""
    return shown(redact(text_to_redact(text)), longest)


def text_to_redact(text: str) -> str:
    """More of the text than is ever shown: no half of a secret is left at the end, and a megabyte is not searched."""
    return text[: 4 * LONGEST]


def standard_console(
    environ: Mapping[str, str], color: str = "auto", *, stdin: TextIO | None = None, force_text: bool = False
) -> Console:
    """The console of this process. `color` is auto, always or never; `force_text`: no colours on stdout."""
    out, err, read = sys.stdout, sys.stderr, stdin or sys.stdin
    interactive = _is_terminal(read) and _is_terminal(err)
    look = _style(out, environ, color, plain=force_text)
    return Console(out, err, look=look, err_look=_style(err, environ, color), interactive=interactive, read=read)


def _style(stream: TextIO, environ: Mapping[str, str], color: str, *, plain: bool = False) -> TerminalStyle:
    terminal = _is_terminal(stream)
    return TerminalStyle(
        colour=not plain and use_colour(color, environ, terminal=terminal),
        unicode=speaks_unicode(stream, environ),
        width=shutil.get_terminal_size().columns if terminal else None,
        language=language_of(environ),
    )


def use_colour(color: str, environ: Mapping[str, str], *, terminal: bool) -> bool:
    """`--color` decides; with `auto` only on a terminal that can, and never when NO_COLOR is set."""
    if color != "auto":
        return color == "always"
    return terminal and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def speaks_unicode(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether the locale says UTF-8 and the stream can write it.

    Python turns the C locale into UTF-8 (and sets LC_CTYPE=C.UTF-8), so the stream's encoding alone does not show what
    the terminal can display.
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
    except ValueError:  # closed before the program started
        return False


def silence(stream: TextIO) -> None:
    """Redirect a stream to /dev/null, so that later writes and the interpreter's last flush do not raise again."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
    except (OSError, ValueError):
        return
