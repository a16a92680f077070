"""Errors as zkbackup shows them: with a category, and fewer exit codes than `logkeep`.

A failed backup ends with 20, a failed restore with 30, a usage or configuration error with 40, a declined question with
3. Finer codes remain where a script needs them: 21 (transactions are lost), 10 (the backup is damaged), 31 (the target
is in use), 52 (another user owns or can exchange what is in the way).
"""

import json
import re
from enum import StrEnum

from logkeep import errors
from logkeep.cli.terminal.messages import message
from logkeep.errors import LogkeepError
from logkeep.model.redaction import redact

_STAYS = {3, 40, 130, 143}
_FINER = {"backup": {21}, "restore": {10, 31, 52}, "verify": {10}, "info": {10}}
_COARSE = {"backup": 20, "restore": 30}
_ELSEWHERE = {1: 1, 52: 52}
"""Of other commands: a fault of this program, a directory that this user may not use. Whatever else a user, a disk or a
host can cause is 40."""


class Category(StrEnum):
    """The field `category` of the error document."""

    IO = "io"
    VALIDATION = "validation"
    CORRUPTION = "corruption"
    CONFIGURATION = "configuration"
    ZOOKEEPER = "zookeeper"
    USER = "user"


_CATEGORIES: tuple[tuple[type[LogkeepError], Category], ...] = (
    (errors.ConfigError, Category.CONFIGURATION),
    (errors.UsageError, Category.USER),
    (errors.Declined, Category.USER),
    (errors.Interrupted, Category.USER),
    (errors.TargetUnsafe, Category.USER),
    (errors.OtherOwner, Category.USER),
    (errors.ClusterError, Category.ZOOKEEPER),
    (errors.ServerFailed, Category.ZOOKEEPER),
    (errors.Damaged, Category.CORRUPTION),
    (errors.DataGap, Category.CORRUPTION),
    (errors.SourceDamaged, Category.CORRUPTION),
    (errors.FormatTooNew, Category.VALIDATION),
    (errors.VerificationFailed, Category.VALIDATION),
)
"""The first match counts; everything else is `io`."""


def category(error: LogkeepError) -> Category:
    return next((found for kind, found in _CATEGORIES if isinstance(error, kind)), Category.IO)


_REMEDIES: tuple[tuple[type[LogkeepError], str], ...] = (
    (errors.UnknownBackup, message("`zkbackup list` shows the ids")),
    (errors.ConfigError, message("see docs/guides/zookeeper.md for the options")),
    (errors.Declined, message("nothing was changed; pass --force to skip the question")),
    (errors.UsageError, message("see `zkbackup --help`")),
    (errors.ObjectMissing, message("`zkbackup verify` shows what is missing; recover the file from a copy")),
    (errors.Damaged, message("`zkbackup verify` shows what is damaged; with --fix it repairs what can be repaired")),
    (errors.Locked, message("wait for the other run, or choose another --backup-id")),
    (errors.Interrupted, message("run again")),
    (
        errors.LogkeepError,
        message("run again with --verbose; if it happens again, report the message and the log file"),
    ),
)
"""Replacements for remedies that name commands or flags of `logkeep`. The first match counts."""
_LOGKEEP_WORDS = re.compile(r"`logkeep |--(?:resume|yes|parallel|engine|source|bootstrap-servers)\b| -v\b")


def remedy(error: LogkeepError) -> str:
    """What to do with this program. Only the default remedy of an error class may name commands of `logkeep`."""
    if error.remedy != type(error).remedy or not _LOGKEEP_WORDS.search(error.remedy):
        return error.remedy
    return next(text for kind, text in _REMEDIES if isinstance(error, kind))


def exit_code(command: str, error: LogkeepError) -> int:
    code = error.exit_code
    if code in _STAYS or code in _FINER.get(command, set()):
        return code
    return _COARSE.get(command) or _ELSEWHERE.get(code, 40)


def as_json(command: str, error: LogkeepError) -> str:
    """One line. `category`, `message`, `cause` and `context` are zkbackup's own; the others are those of `logkeep`."""
    cause = error.__cause__
    document = {
        "type": "error",
        "category": category(error).value,
        "message": redact(error.what),
        "cause": redact(f"{type(cause).__name__}: {cause}") if cause is not None else None,
        "context": {"command": command, "subject": redact(error.subject)},
        "error": error.slug(),
        "remedy": redact(remedy(error)),
        "exit_code": exit_code(command, error),
    }
    return json.dumps(document)
