"""The embedded server of every line: up, used by Apache's own tools, down, and its words as the product reads them."""

import json
import os
from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path

import pytest

from logkeep.embedded.zookeeper import EmbeddedZooKeeper, ZooKeeperRelease
from logkeep.engine.spark.jvm.processes import find_process
from logkeep.errors import ClusterUnreachable, NotAuthorised, ServerFailed, ServerRefused
from logkeep.model.cache import cache_dir
from logkeep.zookeeper.server.client import Credential, four_letter, server_state, session
from tests.support.processes import wait_for
from tests.support.zookeeper import raw_client as raw
from tests.support.zookeeper.tree_recorder import record
from tests.support.zookeeper.versions import versions

pytestmark = pytest.mark.xdist_group("zookeeper-servers")
CACHE = cache_dir(os.environ, Path.home())
SECRET = ((31, "digest", "someone:x5gZ2fZ9bDQwq9xpE1bAj4+O6cM="),)


@pytest.mark.parametrize("version", versions())
def test_every_line_starts_tells_its_state_and_goes(version: str, tmp_path: Path) -> None:
    server = EmbeddedZooKeeper(tmp_path, CACHE, release=ZooKeeperRelease(version), log_dir=tmp_path / "txnlog")
    with server:
        pid = server.pid
        with raw.RawSession(server.client) as client:
            client.must(raw.create("/kept", b"data"))
        wait_for(lambda: server_state(server.client, 30).zxid == 3, "the end of the session")
        state = server_state(server.client, 30)
        assert (state.version, state.mode, state.zxid) == (version, "standalone", 3)
        assert four_letter(server.client, "ruok", 30) == "imok"
    assert pid is not None
    assert find_process(pid) is None
    assert [path.name for path in (tmp_path / "txnlog" / "version-2").iterdir()] == ["log.1"]


def test_apaches_own_client_and_tools_run_from_the_same_jars(tmp_path: Path) -> None:
    with EmbeddedZooKeeper(tmp_path, CACHE) as server:
        arguments = ["-server", server.client, "create", "-c", "/container"]
        server.java_tool("org.apache.zookeeper.ZooKeeperMain", arguments)
    toolkit = "org.apache.zookeeper.server.persistence.TxnLogToolkit"
    shown = server.java_tool(toolkit, ["-d", str(server.log_dir / "version-2" / "log.1")])
    assert "/container" in shown
    with pytest.raises(ServerFailed, match="exit code"):
        server.java_tool(toolkit, ["-d", str(tmp_path / "nowhere")])


@pytest.mark.parametrize("version", versions())
def test_a_server_that_refuses_what_it_finds_says_so(version: str, tmp_path: Path) -> None:
    """In the words by which damage is told from trouble of the machine."""
    (tmp_path / "data" / "version-2").mkdir(parents=True)
    (tmp_path / "data" / "version-2" / "log.7fffffffffffffff").write_text("a restore was not finished\n")
    with pytest.raises(ServerRefused, match="exited while starting") as caught:
        EmbeddedZooKeeper(tmp_path, CACHE, release=ZooKeeperRelease(version)).start()
    assert "server.log" in caught.value.remedy


def test_the_admin_server_gives_a_snapshot(tmp_path: Path) -> None:
    with EmbeddedZooKeeper(tmp_path, CACHE, admin=True) as server:
        answer = json.loads(asked(server, "srvr"))
        assert answer["server_stats"]["server_state"] == "standalone"
        assert asked(server, "snapshot?streaming=true")[:4] == b"ZKSN"


def asked(server: EmbeddedZooKeeper, command: str) -> bytes:
    connection = HTTPConnection("127.0.0.1", server.admin_port, timeout=60)
    connection.request("GET", f"/commands/{command}", headers={"Authorization": f"digest super:{server.password}"})
    answer = connection.getresponse().read()
    connection.close()
    return answer


def test_a_session_sees_what_another_client_sees(tmp_path: Path) -> None:
    with EmbeddedZooKeeper(tmp_path, CACHE) as server:
        with raw.RawSession(server.client, password=server.password) as client:
            client.must(raw.create("/größe ☃", None), raw.create("/größe ☃/secret", b"", SECRET))
            client.must(*(raw.create(f"/größe ☃/secret/{number}", b"x" * number) for number in range(600)))
            client.must(raw.create_container("/c", b"1"), raw.create_ttl("/t", b"2", 3_600_000))
        with session(server.client, 30, [Credential("digest", f"super:{server.password}")]) as opened:
            before = opened.zxid()
            nodes = list(opened.nodes())
            assert opened.zxid() == before
            below = [node.path for node in opened.nodes("/größe ☃".encode())]
        assert len(below) == 602
        seen = record(server.client, server.password).nodes
    assert len(nodes) == len(seen)
    for node in nodes:
        other = seen[node.path.decode() or "/"]
        allowed = tuple((acl.perms, acl.scheme.decode(), acl.id.decode()) for acl in node.acls)
        assert (node.data, allowed, *node[3:]) == (*other[:10], *other[11:])
    paths = [node.path for node in nodes]
    assert all(path[: path.rindex(b"/")] in paths[:place] for place, path in enumerate(paths) if path)


def test_who_may_not_read_is_told_so(tmp_path: Path) -> None:
    with EmbeddedZooKeeper(tmp_path, CACHE) as server:
        with raw.RawSession(server.client) as client:
            client.must(raw.create("/secret", b"", SECRET))
        with session(server.client, 30) as opened, pytest.raises(NotAuthorised) as caught:
            list(opened.nodes())
    assert caught.value.subject == "/secret"


def test_a_server_that_forbids_the_word_is_asked_through_a_session(tmp_path: Path) -> None:
    server = EmbeddedZooKeeper(tmp_path, CACHE)
    with server, raw.RawSession(server.client) as client:
        (reply,) = client.do(raw.create("/one", b""))
    server.settings["4lw.commands.whitelist"] = "ruok"
    server.launch()
    try:
        found: list[int] = []
        wait_for(lambda: bool(found) or tell(server, found), "an answer")
        with raw.RawSession(server.client) as client:
            (later,) = client.do(raw.create("/two", b""))
        # Sessions begin and end in between; when the server hears of an end is its business.
        assert reply.zxid < found[0] < later.zxid
    finally:
        server.stop()


def tell(server: EmbeddedZooKeeper, found: list[int]) -> bool:
    with suppress(ClusterUnreachable):
        found.append(server_state(server.client, 30).zxid)
    return bool(found)


def test_nobody_at_the_address() -> None:
    with pytest.raises(ClusterUnreachable, match="no answer"), session("127.0.0.1:9", 0.5):
        pass
