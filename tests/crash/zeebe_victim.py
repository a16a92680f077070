"""What runs in forked processes: an import of a backup of Zeebe, and an export, with a fault planned."""

from collections.abc import Callable
from pathlib import Path

from logkeep.checkpoint.zeebe.repo.export_run import StoreLayout
from logkeep.repository.chain.commits import SourceRef
from logkeep.store.local.store import LocalStore
from logkeep.store.retrying import RetryingStore
from tests.crash.process_faults import ProcessFaults, path_of
from tests.support.zeebe.archived import exported, imported


def import_one(
    *,
    start: Callable[[], None],
    url: str,
    repository: str,
    zeebe: str,
    number: int,
    fault: str,
    call: int,
    environment: dict[str, str],
) -> dict[str, int]:
    """From Zeebe's store in a directory into the repository; tells how many calls and steps there were."""
    faults = ProcessFaults(url, fault, call, environment, (path_of(url),))
    start()
    faults.begin()
    imported(SourceRef(RetryingStore(faults.store), repository, "zeebe"), LocalStore(Path(zeebe)), number)
    return faults.counted()


def export_one(
    *,
    start: Callable[[], None],
    url: str,
    archive: str,
    repository: str,
    layout: str,
    number: int,
    fault: str,
    call: int,
    environment: dict[str, str],
) -> dict[str, int]:
    """From a repository in a directory into an empty store; tells how many calls and steps there were."""
    faults = ProcessFaults(url, fault, call, environment, (path_of(url),))
    start()
    faults.begin()
    place = SourceRef(LocalStore(Path(archive)), repository, "zeebe")
    exported(place, number, RetryingStore(faults.store), StoreLayout(layout))
    return faults.counted()
