"""Snapshots that take a server long, under load: more than a thousand transactions are in them in part."""

from random import Random

from logkeep.embedded.zookeeper import EmbeddedZooKeeper
from logkeep.zookeeper.model.tree import Tree
from tests.support.zookeeper import raw_client as raw
from tests.support.zookeeper.load import Load
from tests.support.zookeeper.load_operations import DIRECTORIES
from tests.support.zookeeper.server_files import loaded, snapshots

WIDE = 1_000
_LARGE_BYTES = 900_000
_MOST_ROUNDS = 40
_AT_ONCE = 2_000


def fill(server: EmbeddedZooKeeper, base: str) -> None:
    """What takes long to write lies among what is changed all the time: in the directories of a load."""
    random = Random(9)
    with raw.RawSession(server.client, password=server.password) as client:
        client.do(raw.create(base, b""), *(raw.create(f"{base}/{name}", None) for name in _directories()))
        for path in _large(base):
            client.must(raw.create(path, random.randbytes(_LARGE_BYTES)))


def empty(server: EmbeddedZooKeeper, base: str) -> None:
    with raw.RawSession(server.client, password=server.password) as client:
        client.must(*(raw.delete(path) for path in _large(base)))


def widen(server: EmbeddedZooKeeper, load: Load, base: str) -> str:
    """Until there is a snapshot that is wide enough, and another one behind it; its name.

    Beside the load there are many small changes on their way at once, for a snapshot that is not packed is soon done.
    """
    looked_at = {path.name for path in snapshots(server.data_dir)}
    changes = [raw.set_data(f"{base}/{name}", b"again") for name in _directories()]
    with raw.RawSession(server.client, password=server.password) as client:
        for _ in range(_MOST_ROUNDS):
            for _ in range(5):
                client.do(*(changes[number % DIRECTORIES] for number in range(_AT_ONCE)))
            load.wait_for(1)
            for path in snapshots(server.data_dir)[:-1]:  # the newest one is being written perhaps
                if path.name not in looked_at and width(loaded(path)[0]) >= WIDE:
                    return path.name
                looked_at.add(path.name)
    raise AssertionError("no snapshot is wide enough")


def width(tree: Tree) -> int:
    """How many transactions went on meanwhile, at the least: some leave no trace."""
    return max(max(node.czxid, node.mzxid, node.pzxid) for node in tree.nodes.values()) - tree.zxid


def _directories() -> list[str]:
    return [f"d{number:02}" for number in range(DIRECTORIES)]


def _large(base: str) -> list[str]:
    return [f"{base}/{name}/large" for name in _directories()]
