"""The backups in a directory, from their documents alone: no data is read, so that a list is quick.

A document may come from anywhere: a field of a wrong type makes the backup a damaged one (a document that this user
cannot read makes it an unverified one), and no name in it is used as a path. A backup that is being written
(`.<id>.partial`) and a directory without the document and the two data directories are not backups: commands that list
or delete backups ignore them.
"""

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from logkeep.cli.terminal.messages import message
from logkeep.cli.zkbackup.claims import INFO, Claims, claims
from logkeep.cli.zkbackup.options import BundleId
from logkeep.errors import StoreDenied, StoreLocationMissing, UnknownBackup
from logkeep.model.shell_words import shell_word
from logkeep.model.time import within_reason
from logkeep.zookeeper.bundle.layout import SNAPSHOTS, TXNLOGS
from logkeep.zookeeper.model.condition import Condition

_GONE: Final = (FileNotFoundError, NotADirectoryError, IsADirectoryError)
"""The document does not exist. After any other error, such as a denied read, the backup may still be good."""
_NEVER_VERIFIED: Final = message("it was never verified, or not to the end; `zkbackup verify` reports how good it is")


@dataclass(frozen=True, kw_only=True)
class ListedBundle:
    """One backup of the directory. `problem`: why nothing is known about it."""

    name: str
    directory: Path
    taken: datetime
    zxid: int
    size_bytes: int
    """Uncompressed."""
    stored_bytes: int
    """On the disk."""
    condition: Condition
    unproven_end: bool = False
    """No server confirmed that its last transactions were committed."""
    read_back: bool = True
    """Its data was read since it was written."""
    problem: str = ""


def list_bundles(base: Path) -> list[ListedBundle]:
    """All backups below a directory, newest first. Raises StoreLocationMissing, StoreDenied."""
    try:
        with os.scandir(base) as entries:
            names = [e.name for e in entries if e.is_dir(follow_symlinks=False) and _is_id(e.name)]
    except PermissionError as error:
        raise StoreDenied(
            message("the directory cannot be read"),
            subject=str(base),
            remedy=message("run as the user that takes the backups"),
        ) from error
    except OSError as error:
        raise _no_base(base, error) from error
    found = [_listed(base / name) for name in names if is_bundle(base / name)]
    return sorted(found, key=lambda one: (one.taken, one.name), reverse=True)


def _no_base(base: Path, error: OSError) -> StoreLocationMissing:
    gone = isinstance(error, FileNotFoundError)
    return StoreLocationMissing(
        message("there is no such directory of backups")
        if gone
        else f"no backups: {(error.strerror or 'unreadable').lower()}",
        subject=str(base.absolute()),
        remedy=message("name it with --backup-base-dir, or as backup.base_dir in zkbackup.yaml"),
    )


def find(base: Path, wanted: str) -> Path:
    """The directory of one backup, by its id. Raises StoreLocationMissing, UnknownBackup."""
    try:
        base.stat()
    except OSError as error:
        raise _no_base(base, error) from error
    remedy = f"`zkbackup list --backup-base-dir {shell_word(base)}` shows the ids"
    if not _is_id(wanted) or not (base / wanted).is_dir():
        raise UnknownBackup(message("there is no backup with this id"), subject=wanted, remedy=remedy)
    return base / wanted


def is_bundle(directory: Path) -> bool:
    """Whether it is a backup, however damaged; anything else is not ours.

    A directory that this user cannot read counts as one, so that it is listed and never deleted as left over.
    """
    try:
        return (directory / INFO).is_file() or all((directory / name).is_dir() for name in (SNAPSHOTS, TXNLOGS))
    except OSError:
        return True


def _is_id(name: str) -> bool:
    try:
        return bool(BundleId().parse(name))
    except ValueError:
        return False


def _listed(directory: Path) -> ListedBundle:
    try:
        info = claims(directory)
        taken = moment_of(info)
    except (OSError, ValueError) as error:
        return _unknown(directory, error)
    return ListedBundle(
        name=directory.name, directory=directory, taken=taken, zxid=max(info.backup_zxid.decimal, 0),
        size_bytes=info.statistics.total_size, stored_bytes=info.statistics.stored_bytes,
        condition=info.validation.condition,
        unproven_end=info.validation.unproven_end,
        read_back=info.validation.enabled,
        problem=_NEVER_VERIFIED if info.validation.condition is Condition.UNVERIFIED else "",
    )  # fmt: skip


def moment_of(info: Claims) -> datetime:
    """When it was taken, with a time zone. Raises ValueError."""
    moment = within_reason(datetime.fromisoformat(info.backup_timestamp))
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _unknown(directory: Path, error: Exception) -> ListedBundle:
    """A backup without a readable document: the directory's time of change stands in for when it was taken."""
    try:
        taken = datetime.fromtimestamp(directory.stat().st_mtime, UTC)
    except OSError:
        taken = datetime.fromtimestamp(0, UTC)
    why = (error.strerror or "unreadable").lower() if isinstance(error, OSError) else "not a document of a backup"
    hidden = isinstance(error, OSError) and not isinstance(error, _GONE)
    return ListedBundle(
        name=directory.name, directory=directory, taken=taken, zxid=0, size_bytes=0, stored_bytes=0,
        condition=Condition.UNVERIFIED if hidden else Condition.DAMAGED, read_back=False, problem=f"{INFO}: {why}",
    )  # fmt: skip
