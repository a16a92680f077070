"""Halves of multis that servers before 3.6 keep.

They count a multi as processed when its first part is. A snapshot that is begun in that moment bears the multi's zxid
and holds a half of it, and a server that starts from it keeps the half for ever: its tree is not what its logs say any
more, and members of an ensemble differ. That is theirs (a verification tells it); tests that compare trees stay clear.
"""

from logkeep.embedded.zookeeper import EmbeddedZooKeeper
from logkeep.formats.zookeeper.names import parse_name
from logkeep.formats.zookeeper.transactions import Kind, decode
from tests.zookeeper.files import bodies, snapshots

WHOLE_SINCE = (3, 6)


def take_away_halves(server: EmbeddedZooKeeper) -> None:
    """Before it starts again: the newest snapshots that bear the zxid of a multi."""
    if server.release.line >= WHOLE_SINCE:
        return
    multis = {found.zxid for found in map(decode, bodies(server.log_dir)) if found.kind == Kind.MULTI}
    for path in reversed(snapshots(server.data_dir)):
        name = parse_name(path.name)
        if name is None or name.zxid not in multis:
            return
        path.unlink()
