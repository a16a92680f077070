"""The past of a real ZooKeeper 3.9.5, asked: who did what, how two moments differ, and anything in SQL."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException

from tests.support.cli.in_process import Here
from tests.support.cli.zookeeper_repository import server_on
from tests.support.zookeeper.tree_recorder import kazoo, zxid_of

pytestmark = pytest.mark.xdist_group("zookeeper-verbs")


@dataclass(frozen=True)
class Lived:
    here: Here
    bundle: Path
    writer: str
    """Sessions, as ZooKeeper writes them."""
    culprit: str
    zxids: dict[str, int]
    """What the server said it had processed, by what had just been done."""
    backups: tuple[int, int]


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Lived:
    root = tmp_path_factory.mktemp("lived")
    here, data_dir, zxids = Here(root), root / "data", dict[str, int]()
    (root / "repo").mkdir()
    here.run("init")
    with server_on(root / "server", data_dir) as server:
        asked = ("zookeeper", "backup", "--data-dir", str(data_dir), "--zk-host", server.client)
        with kazoo(server.client, server.password) as writer:
            _write(writer)
            zxids["written"] = zxid_of(server.client)
            first = here.json(*asked)["id"]
            with kazoo(server.client, server.password) as other:
                culprit = _session(other)
                other.delete("/shop/price")
            zxids["deleted"] = zxid_of(server.client)
            second = here.json(*asked)["id"]
            asker = _session(writer)
    bundle = here.json("zookeeper", "export", "latest", "--to", str(root))["bundle"]
    return Lived(here, Path(bundle), asker, culprit, zxids, (first, second))


def _session(client: KazooClient) -> str:
    return f"0x{client.client_id[0] & 0xFFFF_FFFF_FFFF_FFFF:x}"


def _write(writer: KazooClient) -> None:
    """A price that changes twice, a multi that works, one that fails, a node that goes with its session."""
    writer.create("/shop")
    writer.create("/shop/price", b"42")
    writer.set("/shop/price", b"4711")
    good = writer.transaction()
    good.create("/shop/müsli", b"5")
    good.set_data("/shop/price", b"43")
    assert not any(isinstance(one, KazooException) for one in good.commit())
    bad = writer.transaction()
    bad.set_data("/shop/price", b"never")
    bad.create("/shop/müsli")
    assert any(isinstance(one, KazooException) for one in bad.commit())
    writer.create("/shop/till/one", b"open", ephemeral=True, makepath=True)


def test_history_names_who_made_changed_and_deleted_it(lived: Lived) -> None:
    for backup in ("latest", str(lived.bundle)):
        told = lived.here.json("zookeeper", "history", "/shop/price", backup)
        seen = [(e["op"], e["txn"], e["version"], e["data_bytes"], e["session"]) for e in told["events"]]
        assert seen == [
            ("create", "create", 0, 2, lived.writer),
            ("setData", "setData", 1, 4, lived.writer),
            ("setData", "multi", 2, 2, lived.writer),
            ("delete", "delete", None, None, lived.culprit),
        ]
        assert lived.zxids["written"] < int(told["events"][-1]["zxid"], 16) <= lived.zxids["deleted"]
        assert {event["proof"] for event in told["events"]} == {"proven"}
    assert int(told["searched"][0]["first"], 16) == 1
    printed = lived.here.run("zookeeper", "history", "/shop/price").stdout
    assert lived.culprit in printed
    assert "4 changes in " in printed


def test_history_of_what_is_below(lived: Lived) -> None:
    def paths(*more: str) -> set[str]:
        return {event["path"] for event in lived.here.json("zookeeper", "history", "/shop/", *more)["events"]}

    assert paths() == {"/shop"}
    assert paths("--children") == {"/shop", "/shop/price", "/shop/müsli", "/shop/till"}
    assert paths("--recursive") == {*paths("--children"), "/shop/till/one"}
    cut = lived.here.json("zookeeper", "history", "/", "--recursive", "--limit", "1")
    assert (len(cut["events"]), cut["events"][0]["op"], cut["total"] > 5) == (1, "delete", True)
    assert lived.here.json("zookeeper", "history", "/never")["events"] == []
    assert lived.here.error("zookeeper", "history", "shop", code=40)["error"] == "usage-error"


def test_diff_tells_what_is_between_two_moments(lived: Lived) -> None:
    first, second = (str(number) for number in lived.backups)
    told = lived.here.json("zookeeper", "diff", first, second)
    assert {one["path"]: one["kinds"] for one in told["differences"]} == {
        "/shop": ["stat"],
        "/shop/price": ["deleted"],
    }
    assert (told["equal"], told["counts"], told["by"]) == (False, {"deleted": 1, "stat": 1}, "replay")
    back = lived.here.json("zookeeper", "diff", str(lived.bundle), f"latest@0x{lived.zxids['written']:x}")
    assert {one["path"]: one["kinds"] for one in back["differences"]}["/shop/price"] == ["created"]
    under = lived.here.json("zookeeper", "diff", first, second, "--path", "/shop/till")
    assert (under["equal"], under["total"]) == (True, 0)
    assert "/shop/price" in lived.here.run("zookeeper", "diff", first, second).stdout


def test_equal_digests_over_the_same_bytes_answer_at_once(lived: Lived) -> None:
    deleted = next(
        event["zxid"]
        for event in lived.here.json("zookeeper", "history", "/shop/price")["events"]
        if event["op"] == "delete"
    )
    told = lived.here.json("zookeeper", "diff", f"latest:standalone@{deleted}", f"latest@{deleted}")
    assert (told["equal"], told["by"], told["differences"]) == (True, "digest", [])
    copy = lived.here.json("zookeeper", "diff", f"latest:standalone@{deleted}", f"{lived.bundle}@{deleted}")
    assert (copy["equal"], copy["by"], copy["differences"]) == (True, "replay", [])
    assert lived.here.error("zookeeper", "diff", "latest:nobody", "latest", code=40)["remedy"].endswith("standalone")
    assert lived.here.error("zookeeper", "diff", "latest@0x7fffffff", "latest", code=30)["error"] == "restore-failed"


def test_sql_over_transactions(lived: Lived) -> None:
    """One start of Spark: everything that happened to the price, and sessions, in one answer."""
    query = (
        "SELECT op, txn, applied, session, max(data_bytes) AS size, min(time) AS at FROM transactions "
        "WHERE path = '/shop/price' OR op = 'closeSession' GROUP BY op, txn, applied, session"
    )
    told = lived.here.json("zookeeper", "log", "--sql", query)
    assert (told["columns"], told["more"]) == (["op", "txn", "applied", "session", "size", "at"], False)
    found = {tuple(row[:-1]) for row in told["rows"]}
    assert found >= {
        ("create", "create", True, lived.writer, 2),
        ("setData", "setData", True, lived.writer, 4),
        ("setData", "multi", True, lived.writer, 2),
        ("setData", "multi", False, lived.writer, len("never")),
        ("delete", "delete", True, lived.culprit, None),
        ("closeSession", "closeSession", True, lived.culprit, None),
    }
    assert all(str(row[-1]).endswith("Z") for row in told["rows"])


@pytest.fixture
def damaged(lived: Lived, tmp_path: Path) -> Here:
    """The same repository, in which a bit of the transaction was flipped that gave the price its second value."""
    shutil.copytree(lived.here.root / "repo", tmp_path / "repo")
    for path in (tmp_path / "repo").rglob("txnlogs/**/*.log"):
        content = path.read_bytes()
        if b"4711" in content:
            path.write_bytes(content.replace(b"4711", b"4710"))
            return Here(tmp_path)
    raise AssertionError("no log holds it")


def test_history_goes_on_behind_damage_and_names_it(lived: Lived, damaged: Here) -> None:
    changed = lived.here.json("zookeeper", "history", "/shop/price")["events"][1]["zxid"]
    told = damaged.json("zookeeper", "history", "/shop/price", code=10)
    assert [event["op"] for event in told["events"]] == ["create", "setData", "delete"]
    (finding,) = told["findings"]
    assert (finding["code"], finding["severity"]) == ("log-damaged", "damage")
    assert f"transactions {changed} to {changed} cannot be read" in finding["what"]
    assert [(one["first"] == "0x1", one["last"] != changed) for one in told["searched"]] == [
        (True, True),
        (False, True),
    ]
    assert "not in the answer" in damaged.run("zookeeper", "history", "/shop/price", code=10).stdout


@pytest.mark.soak  # two starts of Spark
def test_sql_goes_on_behind_damage_and_names_it(damaged: Here) -> None:
    query = "SELECT op, version FROM transactions WHERE path = '/shop/price' AND applied ORDER BY zxid"
    told = damaged.json("zookeeper", "log", "--sql", query, code=10)
    assert told["rows"] == [["create", 0], ["setData", 2], ["delete", None]]
    assert [finding["code"] for finding in told["findings"]] == ["log-damaged"]


def test_without_spark_a_query_is_refused(lived: Lived) -> None:
    refused = lived.here.error("zookeeper", "log", "--sql", "SELECT 1", "--engine", "inline", code=40)
    assert refused["remedy"] == "leave --engine out; Spark needs Java 17"
    assert lived.here.error("zookeeper", "log", code=40)["remedy"].startswith("pass --sql")
