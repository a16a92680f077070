"""What happens between the steps of a guide without its reader: nights pass, a run dies, a disk rots.

`python -m tests.docs.scenes NAME` plays one scene in the repository `./backups` of the guide. Backups are those of the
scripted source, as no verb takes backups yet.
"""

import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

from logkeep.model.time import random_token, utc_now
from logkeep.repository.chain import Place
from logkeep.repository.opening import open_repository
from logkeep.spark.inline import InlineEngine
from logkeep.store.address import open_store
from tests.crash.points import KILLED, in_child, run_backup
from tests.faults.plan import KillAfter
from tests.faults.store import FaultyStore
from tests.scripted.backup import back_up

NIGHTS = 5
_SOURCE = "prod"
_DIRECTORY = Path("backups")


def _place() -> Place:
    return open_repository(open_store(str(_DIRECTORY))).place(_SOURCE)


def nightly_backups() -> None:
    """One backup each night, the last one three hours ago."""
    place = _place()
    for night in range(NIGHTS):
        moment = utc_now() - timedelta(days=NIGHTS - 1 - night, hours=3)
        back_up(place, {0: 9 + 4 * night, 1: 5 + 2 * night}, InlineEngine(), _stopped(moment), random_token)


def _stopped(moment: datetime) -> Callable[[], datetime]:
    return lambda: moment


def run_dies() -> None:
    """A backup is killed after some of its units."""
    place = _place()
    victim = Place(FaultyStore(place.store, KillAfter(20)), place.repository, place.source)
    how = in_child(lambda: run_backup(victim, {0: 60, 1: 60}))
    if how != KILLED:
        raise SystemExit(f"the run was to be killed; it is {how}")


def next_backup() -> None:
    """The night after: the dead run is recorded as failed, what it left is adopted."""
    run_backup(_place(), {0: 60, 1: 60})


def disk_rots() -> None:
    """One bit of one archived object turns over."""
    rotten = min((_DIRECTORY / "sources" / _SOURCE / "topics").rglob("*.log"))
    data = bytearray(rotten.read_bytes())
    data[0] ^= 1
    rotten.write_bytes(data)


def commit_lost() -> None:
    """Somebody deletes the newest commit."""
    max((_DIRECTORY / "sources" / _SOURCE / "commits").iterdir()).unlink()


SCENES: dict[str, Callable[[], None]] = {
    "nightly-backups": nightly_backups,
    "run-dies": run_dies,
    "next-backup": next_backup,
    "disk-rots": disk_rots,
    "commit-lost": commit_lost,
}

if __name__ == "__main__":
    SCENES[sys.argv[1]]()
