"""A tree that the server's own digest disproves: refused, and restored only for a reason that the receipt keeps."""

from pathlib import Path

import pytest

from logkeep.errors import ServerFailed
from logkeep.formats.zookeeper.names import log_name, snapshot_name
from logkeep.formats.zookeeper.snapshot_writer import exact_snapshot
from logkeep.zookeeper.model.tree import rows_of
from tests.support.cli.in_process import Here
from tests.support.cli.zookeeper_repository import server_on
from tests.support.zookeeper.handmade_server import (
    create,
    log_bytes,
    old_server,
    set_acl,
    snapshot_without_acls,
    tree_after,
)
from tests.support.zookeeper.tree_recorder import record

pytestmark = pytest.mark.xdist_group("zookeeper-mismatch")
REASON = "a znode was lost with a disk, the owner knows"


@pytest.fixture
def here(tmp_path: Path) -> Here:
    """A backup of a server whose only snapshot lacks a node that its digest still counts."""
    (tmp_path / "repo").mkdir()
    found, live = Here(tmp_path), tmp_path / "source" / "version-2"
    live.mkdir(parents=True)
    tree = tree_after([create(zxid, b"/n%d" % zxid) for zxid in (1, 2, 3)])
    digest = tree.digest
    del tree.nodes[b"/n2"]
    content = exact_snapshot(tree.sessions, *rows_of(tree), zxid=tree.zxid, digest=digest)
    (live / snapshot_name(3)).write_bytes(b"".join(content))
    (live / log_name(4)).write_bytes(log_bytes([create(4, b"/n4")]))
    found.run("init")
    found.json("zookeeper", "backup", "--data-dir", str(tmp_path / "source"), code=2)
    (tmp_path / "target").mkdir()
    return found


def _asked(here: Here, *more: str) -> tuple[str, ...]:
    target = str(here.root / "target")
    return ("zookeeper", "restore", "latest", "--data-dir", target, "--log-dir", target, *more)


def test_it_is_refused_and_named(here: Here) -> None:
    told = here.error(*_asked(here, "--yes"), code=30)
    assert told["message"] == "the digest that the server wrote at 0x3 is not the one of the replayed tree"
    assert not any((here.root / "target").iterdir())


def test_it_is_restored_for_a_reason_that_is_kept(here: Here, tmp_path: Path) -> None:
    asked = _asked(here, "--accept-mismatch", REASON)
    planned = here.json(*asked, "--dry-run")
    assert "the digests of the server contradict it" in planned["tree"]["labels"]
    here.run(*asked, code=3)
    called = here.run(*asked, "--yes", code=2)
    assert "THIS TREE IS NOT THE ONE THAT THE SERVER HAD" in called.stderr
    assert [row["state"] for row in here.json("receipts", "list")["restores"]] == ["unproven"]
    assert any(REASON in finding["what"] for finding in here.json("receipts", "show", "latest")["findings"])
    with server_on(tmp_path / "server", tmp_path / "target") as server:
        found = record(server.client, server.password).nodes
    assert {path for path in found if path.startswith("/n")} == {"/n1", "/n3", "/n4"}


def test_an_empty_reason_is_none(here: Here) -> None:
    assert here.error(*_asked(here, "--accept-mismatch", "", "--yes"), code=40)["remedy"]


def test_several_hosts_accept_it_together(here: Here, tmp_path: Path) -> None:
    for name in ("zk1", "zk2"):
        old_server(tmp_path / name, epoch=1, epochs=True)
        here.run(
            "zookeeper", "restore", "survey", "--data-dir", str(tmp_path / name), "--to", str(tmp_path / f"{name}.j")
        )
    asked = ("zookeeper", "restore", "plan", "latest", str(tmp_path / "zk1.j"), str(tmp_path / "zk2.j"))
    plan = ("--to", str(tmp_path / "plan.json"))
    assert here.error(*asked, *plan, code=30)["error"] == "restore-failed"
    here.json(*asked, *plan, "--accept-mismatch", REASON)
    done = here.json("zookeeper", "restore", "--plan", plan[1], "--data-dir", str(tmp_path / "zk1"), "--yes", code=2)
    assert (done["verdict"], done["tree"]["epoch"]) == ("unproven", 2)


def test_a_snapshot_that_says_its_digest(tmp_path: Path) -> None:
    """A real server of 3.9.5, with digests on, starts from it, and its own next snapshot goes on from there."""
    (tmp_path / "repo").mkdir()
    here, target = Here(tmp_path), tmp_path / "target"
    old_server(tmp_path / "source")
    target.mkdir()
    here.run("init")
    here.json("zookeeper", "backup", "--data-dir", str(tmp_path / "source"), code=2)
    here.json(*_asked(here, "--digests", "--yes"))
    with server_on(tmp_path / "server", target) as server:
        found = record(server.client, server.password).nodes
        told = here.json("zookeeper", "backup", "--data-dir", str(target), "--zk-host", server.client, "--new-history")
    assert sum(path.startswith("/old") for path in found) == 40
    assert told["findings"] == []
    assert here.json("verify", "--level", "replay")["zookeeper"]["digests_compared"] > 0


def test_original_files_that_a_server_refuses_to_load(tmp_path: Path) -> None:
    """The snapshot names ACLs that only the log behind it tells: the plan says so, and a real server is the judge. It
    asks for them before it comes to the transaction that brings them."""
    (tmp_path / "repo").mkdir()
    here, live, target = Here(tmp_path), tmp_path / "source" / "version-2", tmp_path / "target"
    live.mkdir(parents=True)
    target.mkdir()
    bodies = [create(1, b"/n1"), create(2, b"/n2"), create(3, b"/n1/below"), set_acl(4, b"/n1")]
    (live / snapshot_name(2)).write_bytes(snapshot_without_acls(bodies, b"/n1"))
    (live / log_name(1)).write_bytes(log_bytes(bodies))
    here.run("init")
    here.json("zookeeper", "backup", "--data-dir", str(tmp_path / "source"), code=2)
    asked = _asked(here, "--form", "original")
    told = {finding["code"]: finding for finding in here.json(*asked, "--dry-run")["findings"]}
    assert "restore an exact snapshot" in told["missing-acls"]["remedy"]
    here.run(*asked, "--yes")
    server = server_on(tmp_path / "server", target)
    try:
        with pytest.raises(ServerFailed):
            server.start()
    finally:
        server.stop()
    here.run(*_asked(here, "--yes"))
    with server:
        found = record(server.client, server.password).nodes
    assert {path for path in found if path.startswith("/n")} == {"/n1", "/n1/below", "/n2"}
