"""Errors as zkbackup shows them: a category and an exit code that users of its design know.

Whatever goes wrong in a backup ends with 20, in a restore with 30; usage and configuration with 40, "no" with 3. Finer
codes stay where they tell a script what to do: 21 (transactions are lost), 10 (the backup is damaged), 31 (the target
is in use).
"""

import json
import re
from enum import StrEnum

from logkeep import errors
from logkeep.errors import LogkeepError
from logkeep.model.redaction import redact

_STAYS = {3, 40, 130, 143}
_FINER = {"backup": {21}, "restore": {10, 31}, "verify": {10}, "info": {10}}
_COARSE = {"backup": 20, "restore": 30}


class Category(StrEnum):
    """What kind of thing went wrong."""

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
    (errors.ClusterError, Category.ZOOKEEPER),
    (errors.ServerFailed, Category.ZOOKEEPER),
    (errors.Damaged, Category.CORRUPTION),
    (errors.DataGap, Category.CORRUPTION),
    (errors.SourceDamaged, Category.CORRUPTION),
    (errors.FormatTooNew, Category.VALIDATION),
    (errors.VerificationFailed, Category.VALIDATION),
)
"""The first that fits. What fits none has to do with files."""


def category(error: LogkeepError) -> Category:
    return next((found for kind, found in _CATEGORIES if isinstance(error, kind)), Category.IO)


_REMEDIES: tuple[tuple[type[LogkeepError], str], ...] = (
    (errors.UnknownBackup, "`zkbackup list` shows the ids"),
    (errors.ConfigError, "docs/guides/zookeeper.md shows what may stand there"),
    (errors.Declined, "nothing was changed; pass --force to skip the question"),
    (errors.UsageError, "see `zkbackup --help`"),
    (errors.ObjectMissing, "`zkbackup verify` shows what is missing; bring the file back from a copy"),
    (errors.Damaged, "`zkbackup verify` shows what is damaged, and with --fix mends what can be mended"),
    (errors.Locked, "wait for it, or choose another --backup-id"),
    (errors.Interrupted, "run again"),
    (errors.LogkeepError, "run again with --verbose; if it stays, report the message and the log file"),
)
"""In place of remedies that speak of the other program. The first that fits."""
_OF_THE_OTHER = re.compile(r"`logkeep |--(?:resume|yes|parallel|engine|source|bootstrap-servers)\b| -v\b")


def remedy(error: LogkeepError) -> str:
    """What to do, with this program: errors that say nothing themselves have the house's usual words."""
    if error.remedy != type(error).remedy or not _OF_THE_OTHER.search(error.remedy):
        return error.remedy
    return next(text for kind, text in _REMEDIES if isinstance(error, kind))


def exit_code(command: str, error: LogkeepError) -> int:
    code = error.exit_code
    if code in _STAYS or code in _FINER.get(command, set()):
        return code
    return _COARSE.get(command, 1)


def as_json(command: str, error: LogkeepError) -> str:
    """One line. `category`, `message`, `cause` and `context` are the design's; the rest is the house's."""
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
