"""Errors as users and scripts see them: what happened, to what, what to do next.

Text goes to stderr in three aligned lines; with `--json` one JSON document instead. Both are redacted. A traceback only
goes to the log file or to a crash log.
"""

import json
import os
import platform
from datetime import datetime
from pathlib import Path

import click

from logkeep.cli.frame.command_groups import LazyGroup
from logkeep.cli.frame.logs import open_private, safe_traceback
from logkeep.cli.terminal.console import one_line
from logkeep.cli.terminal.messages import ENGLISH, Translation, message
from logkeep.cli.terminal.text import TerminalStyle, cell_width
from logkeep.config.load import did_you_mean
from logkeep.config.options import OPTIONS
from logkeep.errors import LogkeepError, UsageError
from logkeep.model.redaction import redact
from logkeep.model.time import rfc3339
from logkeep.model.version import __version__

SCHEMA_VERSION = 1
_LABEL_WIDTH = len("error:")
_FLAGS = {flag for o in OPTIONS for s in o.spellings() for flag in (s.flag, f"-{o.short}") if flag}


def as_text(error: LogkeepError, look: TerminalStyle, say: Translation = ENGLISH) -> str:
    """What happened, the subject and the remedy, where there is one: a line each, or wrapped on a narrow terminal."""
    labelled = (
        (message("error:"), "red", say.sentence(error.what)),
        (message("at:"), "bold", error.subject),
        (message("try:"), "bold", say.sentence(error.remedy) if error.remedy else None),
    )
    return "\n".join(_labelled(say(label), style, one_line(text), look) for label, style, text in labelled if text)


def _labelled(label: str, style: str, text: str, look: TerminalStyle) -> str:
    """The text beside its label. A single long word, such as a URL, begins there too."""
    line = " " * (_LABEL_WIDTH - cell_width(label)) + f"{label} {text}"
    wrapped = look.prose(line, indent=_LABEL_WIDTH + 1) if any(gap in text for gap in (" ", "，", "；")) else line
    return wrapped.replace(label, look.paint(label, style), 1)


def as_json(error: LogkeepError) -> str:
    """One line; its fields are part of the JSON contract."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "type": "error",
        "error": error.slug(),
        "message": redact(error.what),
        "subject": redact(error.subject),
        "remedy": redact(error.remedy),
        "exit_code": error.exit_code,
    }
    return json.dumps(document)


def from_click(error: click.ClickException, program: str = "logkeep") -> UsageError:
    """The parser's error as a UsageError, with exit code 40 instead of 2, which means "finished, with warnings"."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context else program
    what = error.format_message().strip()
    remedy = f"see `{command} --help`"
    if isinstance(error, click.NoSuchOption):
        what = f"there is no option {error.option_name}"
        known = [flag for p in context.command.get_params(context) for flag in p.opts] if context else []
        remedy = _argument(error.option_name, context, command) or did_you_mean(error.option_name, known) or remedy
        if isinstance(context and context.command, click.Group) and error.option_name in _FLAGS:
            remedy = f"options come after the command: {command} COMMAND {error.option_name}"
    elif isinstance(error, click.exceptions.NoSuchCommand):
        what = f"there is no command {error.command_name}"
        group = context.command if context else None
        known = group.list_commands(context) if isinstance(group, click.Group) and context else []
        longer = group.longer_words(error.command_name) if isinstance(group, LazyGroup) else []
        remedy = did_you_mean(error.command_name, known) or remedy
        if longer:
            remedy = f"did you mean {' or '.join(filter(None, (', '.join(longer[:-1]), longer[-1])))}?"
    elif isinstance(error, click.MissingParameter) and error.param is not None:
        what = f"{error.param.human_readable_name} is missing"
    elif isinstance(error, click.BadParameter) and error.param and isinstance(error.param.type, click.Choice):
        command, what = f"{command} {error.param.opts[-1]}", error.message
        remedy = did_you_mean(what.split("'")[1], error.param.type.choices) or remedy
    return UsageError(_sentence(what), subject=command, remedy=remedy)


def _argument(option: str, context: click.Context | None, command: str) -> str:
    """A remedy for `--topic orders` where the topic is an argument; else empty."""
    word = option.lstrip("-").removesuffix("s").upper()
    names = [p.human_readable_name for p in context.command.params if isinstance(p, click.Argument)] if context else []
    return next(
        (f"give it without an option: `{command} {name}`" for name in names if name.lstrip("[").startswith(word)), ""
    )


def unexpected(error: BaseException, details: str) -> LogkeepError:
    """A bug, in one line. `details` says where the traceback is."""
    text = " ".join(str(error).split())[:300]
    return LogkeepError(f"unexpected {type(error).__name__}: {text}" if text else f"unexpected {type(error).__name__}",
                        remedy=f"details in {details}; please report it")  # fmt: skip


def _sentence(text: str) -> str:
    """In the style of our messages: lower case, without a full stop."""
    text = text.removesuffix(".")
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


def keep_traceback(error: BaseException, argv: list[str], cache: Path, now: datetime) -> Path | None:
    """Write a crash log below the cache directory, readable by its owner only; None when that is not possible."""
    path = cache / "crashes" / f"{now:%Y%m%dT%H%M%S}-{os.getpid()}.log"
    head = f"logkeep {__version__}, Python {platform.python_version()}, {platform.platform()}, {rfc3339(now)}\n"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open_private(path) as file:
            file.write(head + redact(f"arguments: {argv}\n") + safe_traceback(error) + "\n")
    except (OSError, LogkeepError):
        return None
    return path
