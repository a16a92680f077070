"""Many small backups of one made server, merged, and read back."""

from pathlib import Path

from logkeep.model.time import random_token, utc_now
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.upkeep.merge_plan import MergeRule
from logkeep.repository.upkeep.optimize import Optimized, Optimizing
from logkeep.zookeeper.model.archived import BackupView
from logkeep.zookeeper.repo.merge import WAY
from logkeep.zookeeper.repo.view import view_of
from tests.support.zookeeper.encoding import LOG_HEADER
from tests.support.zookeeper.handmade_directories import INLINE, MadeServer
from tests.support.zookeeper.repositories import archived


class Growing:
    """A server whose newest log gets longer, and a backup after each step; the first is of one transaction."""

    def __init__(self, root: Path, place: SourceRef) -> None:
        self.place, self.last = place, 1
        self.server = MadeServer(root, zxid=1)
        self.server.snapshot(0)
        self.log = self.server.log([1])
        archived(self.place, self.server)

    def backup(self, more: int = 1, *, roll: bool = False) -> int:
        """Some more transactions, in a new file perhaps, and a backup of them; its id."""
        new = list(range(self.last + 1, self.last + 1 + more))
        if roll:
            self.log = self.server.log(new)
        else:
            self.server.add(self.log, new)
        self.last = self.server.zxid = new[-1]
        return int(archived(self.place, self.server).name)


def optimize(place: SourceRef, target_bytes: int = 1 << 20, least: int = 2) -> Optimized:
    return Optimizing(place, WAY, utc_now, random_token).run(MergeRule(target_bytes, least), INLINE)


def log_objects(place: SourceRef) -> list[str]:
    return [info.name for info in place.store.list(f"sources/{place.source}/txnlogs/")]


def records_of(view: BackupView) -> dict[tuple[str, str], bytes]:
    """All records of each log file, however they are cut into pieces."""
    found: dict[tuple[str, str], bytes] = {}
    for log in view.logs:
        with view.open(log) as file:
            data = file.read()
        assert data.startswith(LOG_HEADER)
        found[log.member, log.name] = found.get((log.member, log.name), b"") + data[len(LOG_HEADER) :]
    return found


def everything(place: SourceRef) -> dict[int, dict[tuple[str, str], bytes]]:
    """What every backup holds."""
    return {entry.id: records_of(view_of(place, entry)) for entry in read_chain(place).completed}
