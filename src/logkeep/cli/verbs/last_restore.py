"""The last restore or drill of a backup, as `list` and `status` show it."""

from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec

from logkeep.cli.frame.execute import Run
from logkeep.cli.terminal.text import TerminalStyle, duration
from logkeep.cli.wiring import restores_place
from logkeep.errors import StoreLocationMissing
from logkeep.model.time import rfc3339
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.restores.listing import RestoreRow, last_restores


class LastRestore(msgspec.Struct, frozen=True, kw_only=True):
    """A restore that has ended. Times in RFC 3339."""

    id: int
    backup: int
    drill: bool
    state: str
    """`proven`, `unproven`, `failed` or `aborted`."""
    finished: str
    duration_s: float | None
    """The recovery time that was reached; null when it was given up."""


def last_of_each(run: Run, place: SourceRef) -> dict[int, LastRestore]:
    """The last restore of each backup of a source, by one listing."""
    try:
        found: Mapping[int, RestoreRow] = dict(last_restores(restores_place(run, place)).items())
    except StoreLocationMissing:
        return {}  # a directory of --state-dir that no restore has made yet
    return {backup: told for backup, row in found.items() if (told := _told(backup, row))}


def _told(backup: int, row: RestoreRow) -> LastRestore | None:
    if row.finished is None:
        return None
    return LastRestore(
        id=row.id,
        backup=backup,
        drill=bool(row.drill),
        state=row.state,
        finished=rfc3339(row.finished),
        duration_s=row.duration_s,
    )


def last_of_all(found: Iterable[LastRestore]) -> LastRestore | None:
    return max(found, key=lambda each: (each.finished, each.id), default=None)


def restore_cell(last: LastRestore | None, look: TerminalStyle) -> str:
    """`drill: proven 2026-11-16 RTO 12 s`: for a table."""
    if last is None:
        return ""
    day = look.moment(datetime.fromisoformat(last.finished))[:10]
    return f"{_kind(last)}: {last.state} {day}{_recovery(last)}"


def restore_line(last: LastRestore | None, look: TerminalStyle) -> str:
    """`drill of 20261116001348: proven 2026-11-16 02:15:12 +0000 RTO 12 s`."""
    if last is None:
        return "never"
    when = look.moment(datetime.fromisoformat(last.finished))
    return f"{_kind(last)} of {last.backup}: {last.state} {when}{_recovery(last)}"


def _kind(last: LastRestore) -> str:
    return "drill" if last.drill else "restore"


def _recovery(last: LastRestore) -> str:
    """Only what came back whole has a recovery time."""
    reached = last.duration_s is not None and last.state in {"proven", "unproven"}
    return f" RTO {duration(last.duration_s)}" if reached and last.duration_s is not None else ""
