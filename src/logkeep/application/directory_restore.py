"""A restore to a data directory: what may be replaced, and the steps under its lock."""

import socket
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from logkeep.application.data_directory import (
    DOCUMENT,
    LOCK,
    ApplicationDocument,
    DataDirectory,
    DirectoryLock,
    read_directory,
    require_own_directory,
)
from logkeep.checkpoint.durable_directory import make_durable_directory
from logkeep.checkpoint.restore.histories import reserve_history
from logkeep.checkpoint.restore.plan import ApplicationRestorePlan
from logkeep.checkpoint.restore.receipts import put_receipt, recorded
from logkeep.checkpoint.restore.run import RestoredApplication, finish, holding, restore
from logkeep.checkpoint.restore.swap import STAGED, interrupted
from logkeep.checkpoint.steps import Pause
from logkeep.checkpoint.steps import run as run_steps
from logkeep.errors import Locked, TargetUnsafe
from logkeep.model.ids import RestoreId
from logkeep.model.time import Clock, TokenSource, rfc3339
from logkeep.model.work import Engine
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.documents import seal
from logkeep.repository.chain.owner import this_process


class RestoredDirectory(NamedTuple):
    done: RestoredApplication
    history: int
    id: RestoreId
    """Of its receipt."""


def target_of(directory: Path) -> DataDirectory | None:
    """The application that is there. Raises Damaged."""
    return read_directory(directory) if (directory / DOCUMENT).exists() else None


def check_directory(
    directory: Path, known: DataDirectory | None, plan: ApplicationRestorePlan, *, replace: bool
) -> None:
    """Raises OtherOwner for the directory of another user, and TargetUnsafe for a running application and for files
    that the user did not say to replace."""
    require_own_directory(directory)
    if not directory.exists():
        return
    if known is not None:
        _locked(directory).release()
    if known is not None and known.document.application != plan.application:
        raise TargetUnsafe(f"it has another application, {known.document.name}", subject=str(directory))
    kept = (LOCK, STAGED)
    others = sorted(one.name for one in directory.iterdir() if one.name not in kept)
    allowed = replace if known is not None else interrupted(directory)
    if others and not allowed:
        remedy = "restore to an empty directory, or add --replace: the old files are kept beside the new ones"
        raise TargetUnsafe(f"it is not empty: it has {others[0]}", subject=str(directory), remedy=remedy)


def restore_directory(
    place: SourceRef,
    plan: ApplicationRestorePlan,
    directory: Path,
    known_history: int,
    clock: Clock,
    tokens: TokenSource,
    engine: Callable[[int], Engine],
    pause: Pause,
) -> RestoredDirectory:
    """As a history above `known_history`. An interrupted restore of this directory is finished first.

    Raises OtherOwner, TargetUnsafe if the application runs, Damaged.
    """
    require_own_directory(directory)
    make_durable_directory(directory)
    lock = _locked(directory)
    try:
        run_steps(finish(directory), pause)
        history = reserve_history(place, plan.checkpoint, known_history, clock, tokens)
        document = ApplicationDocument(
            repository="", application=plan.application, name=plan.name, partitions=len(plan.partitions),
            history=history, created=rfc3339(clock()),
        )  # fmt: skip
        label, target = f"{plan.checkpoint}-{tokens()}", f"{socket.gethostname()}: {directory.absolute()}"
        with (
            holding(place, plan, this_process(tokens()), tokens) as chain,
            recorded(place, plan, target, clock, tokens) as stored,
        ):
            done = run_steps(restore(place, chain, plan, directory, seal(document), label, engine), pause)
        put_receipt(stored, history, done.partitions)
        return RestoredDirectory(done, history, stored.id)
    finally:
        lock.release()


def _locked(directory: Path) -> DirectoryLock:
    try:
        return DirectoryLock(directory)
    except Locked as error:
        raise TargetUnsafe(error.what, subject=error.subject, remedy="stop the application first") from error
