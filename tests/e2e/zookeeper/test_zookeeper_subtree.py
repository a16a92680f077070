"""`logkeep zookeeper restore-subtree` into real servers that run; kazoo says what is there afterwards."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from logkeep.cli.verbs.zookeeper.restore import subtree
from logkeep.embedded.zookeeper import EmbeddedZooKeeper, ZooKeeperRelease, digest_id
from logkeep.errors import ClusterUnreachable, NotAuthorised, TargetUnsafe
from logkeep.repository.access import open_repository
from logkeep.repository.chain.commits import SourceRef
from logkeep.store.access import open_store
from logkeep.zookeeper.model.tree import CONTAINER_OWNER, TTL_MARK, Tree
from logkeep.zookeeper.server.client import Credential, ZooKeeperSession, session
from logkeep.zookeeper.subtree.batches import batch_request
from logkeep.zookeeper.subtree.journal import Heading, read_journal
from logkeep.zookeeper.subtree.prepare import PreparedSubtree, SubtreeOptions, prepare
from logkeep.zookeeper.subtree.run import begin, resume, undo
from logkeep.zookeeper.timeline.plan import ToEnd
from logkeep.zookeeper.timeline.verified_path import choose
from tests.support.cli.in_process import Here
from tests.support.zookeeper import raw_client as raw
from tests.support.zookeeper.repositories import newest
from tests.support.zookeeper.running_servers import CACHE
from tests.support.zookeeper.tree_recorder import kazoo, record, zxid_of

pytestmark = pytest.mark.xdist_group("zookeeper-verbs")
Shape = dict[str, tuple[bytes | None, tuple[tuple[int, str, str], ...]]]
USER, PASSWORD = "shop", "till"
CLOSED = ((31, "digest", digest_id(USER, PASSWORD)),)
MANY = 120
SMALL = 4000
"""A jute.maxbuffer for which the shop takes several multis."""
CREDENTIAL = Credential("digest", f"{USER}:{PASSWORD}")


class Stopped(BaseException):
    """As if the machine had died."""


@dataclass
class Shop:
    here: Here
    server: EmbeddedZooKeeper
    backup: str
    tree: Tree
    """As the backup has it."""
    shape: Shape
    auth: tuple[str, str]

    def now(self, top: str = "/shop") -> Shape:
        return shape(self.server, top)

    def back(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        asked = ("zookeeper", "restore-subtree", *arguments, "--zk-host", self.server.client, *self.auth)
        return dict(self.here.json(*asked, code=code))

    def prepared(self, live: ZooKeeperSession, maxbuffer: int = SMALL, *, delete_extra: bool = True) -> PreparedSubtree:
        wish = SubtreeOptions(b"/shop", b"/shop", delete_extra, proven=True, jute_maxbuffer=maxbuffer)
        return prepare(self.tree, live, wish)

    def opened(self) -> Any:
        return session(self.server.client, 30.0, [CREDENTIAL])


def shape(server: EmbeddedZooKeeper, top: str) -> Shape:
    nodes = record(server.client, server.password).nodes
    inside = {path: node for path, node in nodes.items() if path == top or path.startswith(f"{top}/")}
    return {path: (node.data, node.acls) for path, node in inside.items() if not node.owner}


def open_shop(server: EmbeddedZooKeeper, *, special: bool = True) -> None:
    with raw.RawSession(server.client) as client:
        plain = [raw.create("/shop", b"open"), raw.create("/shop/ä price", b"42"), raw.create("/shop/null", None)]
        client.must(*plain, raw.create("/shop/orders", b""), raw.create("/shop/safe", b"inner"))
        client.must(*(raw.create(f"/shop/orders/{n}", b"order %d" % n) for n in range(MANY)))
        client.must(raw.create("/shop/safe/gold", b"secret", CLOSED), raw.set_acl("/shop/safe", CLOSED))
        if special:
            client.must(raw.create_container("/shop/basket", b"c"), raw.create("/shop/basket/apple", b""))
            client.must(raw.create_ttl("/shop/offer", b"t", 3_600_000))


def place(here: Here) -> SourceRef:
    return open_repository(open_store(str(here.root / "repo"))).choose(None)


def tree_now(here: Here, server: EmbeddedZooKeeper) -> Tree:
    """Of a backup that is taken now."""
    here.json("zookeeper", "backup", "--data-dir", str(server.data_dir), "--zk-host", server.client)
    return choose(newest(place(here)), ToEnd()).replayed.tree


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    directory = tmp_path_factory.mktemp("subtree")
    here, auth = Here(directory), directory / "auth"
    (directory / "repo").mkdir()
    here.run("init")
    auth.write_text(f"digest:{USER}:{PASSWORD}\n")
    auth.chmod(0o600)
    with EmbeddedZooKeeper(directory / "server", CACHE) as server:
        open_shop(server)
        with raw.RawSession(server.client) as waiter:
            waiter.must(raw.create("/shop/waiter", b"", flags=raw.EPHEMERAL))
            tree = tree_now(here, server)
            before = shape(server, "/shop")
        backup = str(here.json("list")["backups"][0]["id"])
        yield Shop(here, server, backup, tree, before, ("--auth-file", str(auth)))


@pytest.fixture
def shop(opened: Shop) -> Shop:
    """With all that the backup has, and nothing else."""
    with opened.opened() as live:
        prepared = opened.prepared(live, 0xFFFFF)
        journal = opened.here.root / f"fixture-{zxid_of(opened.server.client):x}"
        begin(live, journal, Heading(hosts="", top="/shop", what="fixture"), prepared.batches)
    assert opened.now() == opened.shape
    return opened


def havoc(shop: Shop) -> Shape:
    """What differs then: missing, set, extra nodes and other ACLs."""
    with kazoo(shop.server.client, shop.server.password) as client:
        client.delete("/shop/safe", recursive=True)
        client.delete("/shop/basket", recursive=True)
        for number in range(0, MANY, 2):
            client.delete(f"/shop/orders/{number}")
        client.set("/shop/orders/1", b"other")
        client.set("/shop/null", b"no more")
        client.create("/shop/extra/deep", b"x", makepath=True)
        client.set_acls("/shop/ä price", client.get_acls("/shop/orders")[0][:0] + _read_only())
    return shop.now()


def _read_only() -> list[Any]:
    from kazoo.security import make_acl  # noqa: PLC0415 - as the client's own users do

    return [make_acl("world", "anyone", read=True, admin=True)]


def test_a_deleted_subtree_comes_back_with_data_acls_and_kinds(shop: Shop) -> None:
    with kazoo(shop.server.client, shop.server.password) as client:
        client.delete("/shop", recursive=True)
    before = zxid_of(shop.server.client)
    foreseen = shop.back(shop.backup, "/shop", "--dry-run")
    assert zxid_of(shop.server.client) == before + 2, "a session begins and ends, and that is all"
    assert shop.now() == {}
    assert {each["path"]: each["lost"] for each in foreseen["left_out"]} == {"/shop/waiter": False}
    assert len(foreseen["not_restored"]) == 4
    done = shop.back(shop.backup, "/shop", "--yes", "--journal", str(shop.here.root / "whole"))
    assert (done["verdict"], done["differing"], done["unreadable"]) == ("done", [], [])
    assert done["changes"] == foreseen["changes"]
    assert shop.now() == shop.shape
    tree = tree_now(shop.here, shop.server)
    assert tree.nodes[b"/shop/basket"].owner == CONTAINER_OWNER
    assert tree.nodes[b"/shop/offer"].owner == TTL_MARK | 3_600_000
    assert shop.back(shop.backup, "/shop", "--yes")["verdict"] == "nothing-to-do"


def test_only_what_differs_is_changed_and_an_undo_takes_it_back(shop: Shop) -> None:
    broken, first, second = havoc(shop), shop.here.root / "differs", shop.here.root / "undone"
    done = shop.back(shop.backup, "/shop", "--yes", "--journal", str(first))
    extra = {"/shop/extra", "/shop/extra/deep"}
    assert shop.now() == shop.shape | {path: broken[path] for path in extra}
    assert done["extra"] == 2
    kinds = [change["kind"] for change in done["changes"]]
    assert kinds == sorted(kinds, key=lambda kind: kind == "acls")
    assert (kinds.count("set"), kinds.count("create"), kinds.count("acls")) == (2, MANY // 2 + 4, 2)
    undone = shop.here.json(
        "zookeeper", "restore-subtree", "--undo", str(first), "--journal", str(second), "--yes", *shop.auth
    )
    assert (undone["verdict"], undone["made"]) == ("undone", done["made"])
    assert shop.now() == broken


def test_delete_extra_deletes_what_no_session_holds(shop: Shop) -> None:
    havoc(shop)
    with raw.RawSession(shop.server.client) as cook:
        cook.must(raw.create("/shop/kitchen", b""), raw.create("/shop/kitchen/cook", b"", flags=raw.EPHEMERAL))
        cook.must(raw.create("/shop/kitchen/pan", b""))
        done = shop.back(shop.backup, "/shop", "--yes", "--delete-extra", "--journal", str(shop.here.root / "extra"))
        left_out = {each["path"] for each in done["left_out"]}
        assert left_out == {"/shop/waiter", "/shop/kitchen", "/shop/kitchen/cook"}
        assert shop.now() == shop.shape | {"/shop/kitchen": (b"", raw.OPEN)}


def test_a_subtree_gets_another_path(shop: Shop) -> None:
    done = shop.back(shop.backup, "/shop/safe", "--as", "/copy", "--yes", "--journal", str(shop.here.root / "copy"))
    assert done["verdict"] == "done"
    expected = {path.replace("/shop/safe", "/copy"): node for path, node in shop.shape.items() if "/safe" in path}
    assert shop.now("/copy") == expected
    refused = shop.here.error(
        "zookeeper", "restore-subtree", shop.backup, "/shop", "--as", "/no/where", "--zk-host", shop.server.client,
        "--yes", *shop.auth, code=40,
    )  # fmt: skip
    assert refused["subject"] == "/no/where"


def test_without_credentials_what_is_open_can_be_restored_and_nothing_is_readable_meanwhile(shop: Shop) -> None:
    havoc(shop)
    asked = ("zookeeper", "restore-subtree", shop.backup, "/shop", "--zk-host", shop.server.client, "--yes")
    done = shop.here.json(*asked, "--journal", str(shop.here.root / "nobody"))
    assert done["verdict"] == "done"
    assert set(done["unreadable"]) == {"/shop/safe", "/shop/safe/gold"}
    assert {p: n for p, n in shop.now().items() if "extra" not in p} == shop.shape
    told = shop.here.error(*asked, code=52)
    assert (told["error"], told["subject"]) == (NotAuthorised.slug(), "/shop/safe")


def test_its_receipt_tells_what_was_written_and_no_secret(shop: Shop) -> None:
    havoc(shop)
    journal = shop.here.root / "told"
    done = shop.back(shop.backup, "/shop", "--yes", "--delete-extra", "--journal", str(journal))
    told = shop.here.json("receipts", "show", str(done["restore"]))
    assert (told["restore"]["state"], told["restore"]["part"], told["options"]) == ("part", "subtree", _ASKED)
    facts = told["facts"]
    assert [facts[word].split(":")[0] for word in ("created", "set", "deleted")] == [f"{MANY // 2 + 4}", "2", "2"]
    assert facts["set"] == "2: /shop/null, /shop/orders/1"
    assert (facts["changes made"], facts["requests"]) == (str(done["made"]), str(done["multis"]))
    assert (facts["nodes read again"], facts["of these different"]) == (str(done["compared"]), "0")
    assert facts["journal, for an undo"].endswith(f": {journal}")
    left_out = {each["where"] for each in told["findings"] if each["code"] == "left-out"}
    assert left_out == {"/shop/waiter"}
    assert len([each for each in told["findings"] if each["code"] == "not-restored-live"]) == 4
    assert "subtree of zookeeper" in shop.here.run("receipts", "show", "latest").stdout
    assert shop.here.json("list")["backups"][0]["last_restore"] is None, "a part says nothing of the whole"
    shop.here.json("zookeeper", "restore-subtree", "--undo", str(journal), "--journal", f"{journal}-undo", "--yes",
                   *shop.auth)  # fmt: skip
    assert shop.here.json("receipts", "show", str(done["restore"]))["restore"]["state"] == "aborted"
    kept = b"".join(each.read_bytes() for each in shop.here.root.glob("repo/sources/*/restores/*/*"))
    for secret in (PASSWORD, CLOSED[0][2].partition(":")[2], "secret", "order 1", str(shop.auth[1])):
        assert secret.encode() not in kept, secret


_ASKED = {"delete-extra": "true"}


def test_the_journal_is_named_before_the_first_change(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(*_: object) -> None:
        raise ClusterUnreachable("nobody knows whether it was done")

    broken = havoc(shop)
    monkeypatch.setattr(subtree, "begin", dies)
    asked = (shop.backup, "/shop", "--zk-host", shop.server.client, "--yes", "--journal", str(tmp_path / "named"))
    told = shop.here.run("zookeeper", "restore-subtree", *asked, *shop.auth, code=51)
    assert told.stderr.splitlines()[0] == f"its journal is {tmp_path / 'named'}"
    assert shop.now() == broken


@pytest.mark.parametrize("written", ["/shop/null", "/shop/orders/1"])
def test_killed_and_then_written_by_somebody_else_it_is_undone_but_for_that(
    shop: Shop, tmp_path: Path, written: str
) -> None:
    """The server did the multi, its answer never came, and a client wrote one of the two nodes."""
    with kazoo(shop.server.client, shop.server.password) as client:
        client.delete("/shop/basket", recursive=True)
        client.set("/shop/orders/1", b"other")
        client.set("/shop/null", b"no more")
        broken, journal = shop.now(), tmp_path / "journal"
        with shop.opened() as live, suppress(Stopped):
            prepared = shop.prepared(live, 0xFFFFF)
            begin(live, journal, Heading(hosts=shop.server.client, top="/shop", what=""), prepared.batches,
                  _dying_at("sent 0"))  # fmt: skip
        client.set(written, b"theirs")
    undo_it = ("zookeeper", "restore-subtree", "--undo", str(journal), "--journal", str(tmp_path / "undo"), "--yes")
    told = shop.here.json(*undo_it, *shop.auth, code=2)
    assert (told["verdict"], told["left_alone"]) == ("changed-since", [written])
    assert shop.now() == broken | {written: (b"theirs", raw.OPEN)}


def test_what_was_stopped_says_how_far_it_came_and_its_resume_too(shop: Shop, tmp_path: Path) -> None:
    """An ACL forbids one of many changes; somebody else may make it."""
    with kazoo(shop.server.client, shop.server.password) as client:
        client.delete("/shop/orders", recursive=True)
        client.set("/shop/null", b"no more")
        client.set_acls("/shop/null", _read_only())
    journal, allowed = tmp_path / "stopped", tmp_path / "super"
    allowed.write_text(f"digest:super:{shop.server.password}\n")
    allowed.chmod(0o600)
    refused = ("zookeeper", "restore-subtree", shop.backup, "/shop", "--zk-host", shop.server.client, "--yes")
    small = ("--jute-maxbuffer", str(SMALL), "--journal", str(journal))
    assert f"--resume {journal}" in shop.here.error(*refused, *small, *shop.auth, code=52)["remedy"]
    stopped = shop.here.json("receipts", "show", "latest")
    assert (stopped["restore"]["state"], stopped["findings"][0]["code"]) == ("stopped", NotAuthorised.slug())
    assert stopped["facts"]["changes made"] == f"0 of {MANY + 3}"
    shop.here.json("zookeeper", "restore-subtree", "--resume", str(journal), "--yes", "--auth-file", str(allowed))
    ended = shop.here.json("receipts", "show", "latest")
    assert (ended["restore"]["id"], ended["restore"]["state"]) == (stopped["restore"]["id"], "part")
    assert ended["restore"]["receipts"] == 2
    assert shop.now() == shop.shape


@pytest.mark.parametrize("kind", ["set", "create", "delete", "acls"])
def test_somebody_elses_change_between_plan_and_operation_stops_it(shop: Shop, tmp_path: Path, kind: str) -> None:
    broken, journal = havoc(shop), tmp_path / "journal"
    with shop.opened() as live, kazoo(shop.server.client, shop.server.password) as client:
        prepared = shop.prepared(live)
        if kind == "set":
            client.set("/shop/orders/1", b"faster")
        elif kind == "create":
            client.create("/shop/orders/98", b"faster")
        elif kind == "delete":
            client.create("/shop/extra/deep/new", b"faster")
        else:
            client.set_acls("/shop/ä price", _read_only()[:1] * 2)
        faster = shop.now()
        heading = Heading(hosts="", top="/shop", what="")
        with pytest.raises(TargetUnsafe, match=r"changes were made, none of this multi") as stopped:
            begin(live, journal, heading, prepared.batches)
        assert stopped.value.exit_code == 31
        done = read_journal(journal).done
        assert 0 <= done < len(prepared.batches)
        with pytest.raises(TargetUnsafe):
            resume(live, journal)
        undo(live, journal, tmp_path / "undo", SMALL)
    assert shop.now() == faster
    assert broken.keys() <= faster.keys()


def test_killed_at_any_step_it_is_resumed_or_undone(shop: Shop, tmp_path: Path) -> None:
    broken, steps = havoc(shop), list[str]()
    heading = Heading(hosts=shop.server.client, top="/shop", what="")
    with shop.opened() as live:
        begin(live, tmp_path / "all", heading, shop.prepared(live).batches, steps.append)
        assert shop.now() == shop.shape
        undo(live, tmp_path / "all", tmp_path / "all-undo", SMALL)
    assert shop.now() == broken
    assert len(steps) > 15
    for number, last in enumerate(steps):
        journal = tmp_path / str(number)
        with shop.opened() as live, suppress(Stopped):
            begin(live, journal, heading, shop.prepared(live).batches, _dying_at(last))
        with shop.opened() as live:
            if number % 2:
                resume(live, journal)
                assert shop.now() == shop.shape, last
            undo_journal = tmp_path / f"{number}-undo"
            with suppress(Stopped):
                undo(live, journal, undo_journal, SMALL, _dying_at("sent 1"))
            resume(live, undo_journal)
        assert shop.now() == broken, last


def _killed_under_way(shop: Shop, journal: Path) -> None:
    """A process dies when it has noted its second batch."""
    heading = Heading(hosts=shop.server.client, top="/shop", what="")
    with shop.opened() as live, suppress(Stopped):
        begin(live, journal, heading, shop.prepared(live).batches, _dying_at("began 1"))


def _comes_late(shop: Shop, journal: Path) -> None:
    """The server has the request of the dead process when a resume has sent its own; then all is undone."""
    with shop.opened() as live, shop.opened() as dead:

        def after(step: str) -> None:
            if step == "began 1":
                assert dead.ask(batch_request(read_journal(journal).batches[1]), "") == 0

        resume(live, journal, after)
        assert shop.now() == shop.shape
        undo(live, journal, journal.with_name("undo"), SMALL)


def test_a_request_that_comes_late_is_not_taken_for_somebody_elses(shop: Shop, tmp_path: Path) -> None:
    """A process dies while its request is on its way: a resume may look before the server has it."""
    broken, journal = havoc(shop), tmp_path / "late"
    _killed_under_way(shop, journal)
    _comes_late(shop, journal)
    assert shop.now() == broken


@pytest.mark.parametrize("second", ["settled", "began 1"])
def test_a_request_may_come_late_after_two_kills_too(shop: Shop, tmp_path: Path, second: str) -> None:
    """The first resume has looked, seen nothing and noted that, or begun again, when it is killed as well."""
    broken, journal = havoc(shop), tmp_path / "late"
    _killed_under_way(shop, journal)
    with shop.opened() as live, pytest.raises(Stopped):
        resume(live, journal, _dying_at(second))
    _comes_late(shop, journal)
    assert shop.now() == broken


def _dying_at(last: str) -> Any:
    def after(step: str) -> None:
        if step == last:
            raise Stopped

    return after


def test_a_server_that_dies_leaves_it_in_doubt_and_resumable(shop: Shop, tmp_path: Path) -> None:
    havoc(shop)
    heading, journal = Heading(hosts=shop.server.client, top="/shop", what=""), tmp_path / "journal"

    def after(step: str) -> None:
        if step == "began 2":
            shop.server.kill()

    with (
        session(shop.server.client, 5.0, [CREDENTIAL]) as live,
        pytest.raises(ClusterUnreachable, match="is unknown"),
    ):
        begin(live, journal, heading, shop.prepared(live).batches, after)
    shop.server.start()
    told = shop.here.json("zookeeper", "restore-subtree", "--resume", str(journal), "--yes", *shop.auth)
    assert told["verdict"] == "resumed"
    assert shop.now() == shop.shape


def test_the_oldest_server_takes_all_but_containers(shop: Shop, tmp_path: Path) -> None:
    release = ZooKeeperRelease("3.4.14")
    with EmbeddedZooKeeper(tmp_path / "server", CACHE, release=release) as server:
        asked = ("zookeeper", "restore-subtree", shop.backup, "--zk-host", server.client, *shop.auth, "--yes")
        refused = shop.here.error(*asked[:3], "/shop", *asked[3:], code=31)
        assert "3.4.14" in refused["message"]
        done = shop.here.json(*asked[:3], "/shop/safe", *asked[3:], "--journal", str(tmp_path / "old"))
        assert done["verdict"] == "done"
        expected = {path: node for path, node in shop.shape.items() if "/safe" in path}
        assert {p: n for p, n in shape(server, "/shop").items() if p != "/shop"} == expected
        undone = shop.here.json(
            "zookeeper", "restore-subtree", "--undo", str(tmp_path / "old"), "--journal", str(tmp_path / "u"), "--yes",
            *shop.auth,
        )  # fmt: skip
        assert undone["verdict"] == "undone"
        assert shape(server, "/shop") == {}
