"""A subtree's restore into a real server, killed (SIGKILL) at every step: resumed it is exact, undone nothing is left.

The same for an undo that is killed. Versions of live nodes tell whether a request on the wire was carried out.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest

from logkeep.embedded.zookeeper import EmbeddedZooKeeper, digest_id
from tests.crash.forker import Forker
from tests.crash.seeds import seeded_part
from tests.support.cli.in_process import Here
from tests.support.zookeeper import raw_client as raw
from tests.support.zookeeper.running_servers import CACHE
from tests.support.zookeeper.tree_recorder import kazoo, record

pytestmark = pytest.mark.xdist_group("zookeeper")
Shape = dict[str, tuple[bytes | None, tuple[tuple[int, str, str], ...]]]
CLOSED = ((31, "digest", digest_id("shop", "till")),)
SMALL = "700"
"""A jute.maxbuffer for which the shop takes several multis."""
_SHARE = 12


@dataclass
class Shop:
    here: Here
    server: EmbeddedZooKeeper
    forks: Forker
    auth: str
    whole: Shape
    """As the backup has it."""
    broken: Shape
    """As it is before each restore."""
    names: Iterator[int] = field(default_factory=count)

    def now(self) -> Shape:
        nodes = record(self.server.client, self.server.password).nodes
        return {path: (node.data, node.acls) for path, node in nodes.items() if path.startswith("/shop")}

    def journal(self) -> Path:
        return self.here.root / f"journal-{next(self.names)}"

    def restore(self, journal: Path) -> list[str]:
        asked = ["latest", "/shop", "--zk-host", self.server.client, "--delete-extra", "--journal", str(journal)]
        return self.command(*asked)

    def undo(self, journal: Path, new: Path) -> list[str]:
        return self.command("--undo", str(journal), "--journal", str(new))

    def command(self, *arguments: str) -> list[str]:
        common = ("--auth-file", self.auth, "--jute-maxbuffer", SMALL, "--yes")
        return ["zookeeper", "restore-subtree", *arguments, *common]

    def killed(self, arguments: list[str], die_at: int) -> int:
        """How many steps it had when it did not die."""
        victim = "tests.crash.subtree_victim:run_subtree"
        end = self.forks.run(victim, root=str(self.here.root), arguments=arguments, die_at=die_at)
        assert end.killed is bool(die_at), end.result
        return 0 if end.killed else int(end.result["steps"])

    def state(self) -> str:
        """Of the last restore, as the repository has it."""
        return str(self.here.json("receipts", "list")["restores"][-1]["state"])


def _open(server: EmbeddedZooKeeper) -> None:
    with raw.RawSession(server.client) as client:
        client.must(raw.create("/shop", b"open"), raw.create("/shop/price", b"42"), raw.create("/shop/safe", b"inner"))
        client.must(*(raw.create(f"/shop/{n}", b"order %d" % n) for n in range(6)))
        client.must(raw.create("/shop/safe/gold", b"secret", CLOSED), raw.set_acl("/shop/safe", CLOSED))


def _break(server: EmbeddedZooKeeper) -> None:
    """Missing, set and extra nodes, and other ACLs."""
    with kazoo(server.client, server.password) as client:
        client.delete("/shop/safe", recursive=True)
        client.set("/shop/price", b"4711")
        for number in range(3):
            client.delete(f"/shop/{number}")
        client.create("/shop/extra/deep", b"x", makepath=True)
    with raw.RawSession(server.client) as closing:
        closing.must(raw.set_acl("/shop/5", ((17, "world", "anyone"),)))


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, forks: Forker) -> Iterator[Shop]:
    root = tmp_path_factory.mktemp("subtree")
    here, auth = Here(root), root / "auth"
    (root / "repo").mkdir()
    here.run("init")
    auth.write_text("digest:shop:till\n")
    auth.chmod(0o600)
    with EmbeddedZooKeeper(root / "server", CACHE) as server:
        _open(server)
        here.run("zookeeper", "backup", "--data-dir", str(server.data_dir), "--zk-host", server.client)
        made = Shop(here, server, forks, str(auth), {}, {})
        made.whole = made.now()
        _break(server)
        made.broken = made.now()
        yield made


@pytest.fixture(scope="module")
def steps(shop: Shop) -> tuple[int, int]:
    """Of a restore, and of its undo."""
    journal, back = shop.journal(), shop.journal()
    restoring = shop.killed(shop.restore(journal), 0)
    assert (shop.now(), shop.state()) == (shop.whole, "part")
    undoing = shop.killed(shop.undo(journal, back), 0)
    assert (shop.now(), shop.state()) == (shop.broken, "aborted")
    return restoring, undoing


def _part(what: str, steps: int) -> list[int]:
    return seeded_part(what, list(range(1, steps + 1)), _SHARE)


def _began(shop: Shop, journal: Path) -> bool:
    """Whether its plan is whole on disk: before that it has changed nothing, and says so."""
    if b'"type":"ready"' in journal.read_bytes().rpartition(b"\n")[0]:
        return True
    told = shop.here.error(*shop.command("--resume", str(journal)), code=30)
    assert told["remedy"] == "nothing was changed: run the restore again"
    return False


def _ends_from(shop: Shop, points: list[int], *, resumed: bool) -> None:
    """`resumed`: to its end first; then, or at once, it is undone."""
    for point in points:
        journal = shop.journal()
        shop.killed(shop.restore(journal), point)
        if not _began(shop, journal):
            assert (shop.now(), shop.state()) == (shop.broken, "ongoing"), point
            continue
        if resumed:
            shop.here.run(*shop.command("--resume", str(journal)))
            assert (shop.now(), shop.state()) == (shop.whole, "part"), point
        shop.here.run(*shop.undo(journal, shop.journal()))
        assert (shop.now(), shop.state()) == (shop.broken, "aborted"), point


def _undone_from(shop: Shop, points: list[int]) -> None:
    for point in points:
        journal, back = shop.journal(), shop.journal()
        shop.here.run(*shop.restore(journal))
        shop.killed(shop.undo(journal, back), point)
        again = shop.command("--resume", str(back)) if _began(shop, back) else shop.undo(journal, shop.journal())
        shop.here.run(*again)
        assert (shop.now(), shop.state()) == (shop.broken, "aborted"), point


def test_killed_it_is_resumed_or_undone(shop: Shop, steps: tuple[int, int]) -> None:
    assert steps[0] > 60
    points = _part("killed", steps[0])
    _ends_from(shop, points[::2], resumed=True)
    _ends_from(shop, points[1::2], resumed=False)


def test_killed_while_it_is_undone(shop: Shop, steps: tuple[int, int]) -> None:
    _undone_from(shop, _part("undone", steps[1])[:3])


@pytest.mark.soak
@pytest.mark.parametrize("resumed", [True, False], ids=["resumed", "undone"])
def test_killed_at_every_step(shop: Shop, steps: tuple[int, int], resumed: bool) -> None:
    _ends_from(shop, list(range(1, steps[0] + 1)), resumed=resumed)


@pytest.mark.soak
def test_killed_at_every_step_while_it_is_undone(shop: Shop, steps: tuple[int, int]) -> None:
    _undone_from(shop, list(range(1, steps[1] + 1)))
