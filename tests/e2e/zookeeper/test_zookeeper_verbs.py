"""`logkeep` on backups of a real ZooKeeper 3.9.5: every verb, as users call it."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from logkeep.embedded import zookeeper_boot
from logkeep.zookeeper.bundle.view import BundleView
from logkeep.zookeeper.server.client import LiveNode
from logkeep.zookeeper.verify.boot import Boot, BootedServer
from tests.support.cli.zookeeper_repository import Archived, archived, server_on
from tests.support.zookeeper.tree_judge import logged
from tests.support.zookeeper.tree_recorder import Recording, record

pytestmark = pytest.mark.xdist_group("zookeeper-verbs")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Archived:
    return archived(tmp_path_factory.mktemp("archived"))


@pytest.fixture
def own(original: Archived, tmp_path: Path) -> Archived:
    return original.copied(tmp_path)


def served(own: Archived, tmp_path: Path) -> Recording:
    with server_on(tmp_path / "server", own.data_dir) as server:
        return record(server.client, server.password)


def test_list_info_and_status_know_the_kind(original: Archived) -> None:
    here = original.here
    assert [row["id"] for row in here.json("list")["backups"]] == list(original.backups)
    info = here.json("info", "latest")
    (member,) = info["zookeeper"]["members"]
    assert (member["name"], member["role"], member["version"]) == ("standalone", "standalone", "3.9.5")
    assert int(member["last"], 16) >= original.late.zxid
    assert "can be restored: " in here.run("info", "latest").stdout
    assert here.json("status", "--max-age", "1h")["sources"][0]["newest_good"] == original.backups[1]


def test_every_level_finds_a_good_backup_good(original: Archived) -> None:
    for level in ("files", "data", "replay", "boot"):
        told = original.here.json("verify", "--level", level)
        assert (told["verdict"], told["level"], told["findings"]) == ("good", level, []), told
    assert told["zookeeper"]["digests_compared"] > 0
    assert int(told["zookeeper"]["end"], 16) >= original.late.zxid


def test_a_level_of_another_kind_is_a_usage_error(original: Archived) -> None:
    told = original.here.error("verify", "--level", "records", code=40)
    assert told["remedy"] == "choose among files, data, replay, boot"
    assert original.here.error("verify", "--level", "replay", "--sample", "1/7", code=40)["error"] == "usage-error"
    assert original.here.json("verify", "--level", "data", "--sample", "1/1000")["verdict"] == "good"


def test_a_changed_byte_is_found_named_and_remembered(own: Archived) -> None:
    shared = min((own.here.root / "repo").rglob("txnlogs/**/*.log"), key=lambda path: path.name)
    whole = bytearray(shared.read_bytes())
    whole[len(whole) // 2] ^= 1
    shared.write_bytes(whole)
    own.here.run("verify", "--level", "files")
    told = own.here.json("verify", str(own.backups[1]), "--level", "data", code=10)
    name = str(shared.relative_to(own.here.root / "repo"))
    assert name in {finding["where"] for finding in told["findings"]}
    assert told["also_damaged"] == [own.backups[0]]
    on_spark = own.here.json("verify", str(own.backups[1]), "--level", "data", "--engine", "spark", code=10)
    assert (on_spark["findings"], on_spark["objects_read"]) == (told["findings"], told["objects_read"])
    assert {row["health"] for row in own.here.json("list")["backups"]} == {"damaged"}
    refused = own.here.error("zookeeper", "restore", "latest", *own.target, "--yes", code=30)
    assert refused["error"] == "restore-failed"


def test_a_missing_object_is_told_once(own: Archived) -> None:
    gone = max((own.here.root / "repo").rglob("txnlogs/**/*.log*"), key=lambda path: path.name)
    gone.unlink()
    told = own.here.json("verify", "--level", "replay", code=10)
    name = str(gone.relative_to(own.here.root / "repo"))
    assert [finding["code"] for finding in told["findings"] if finding["where"] == name] == ["object-missing"]
    assert told["also_damaged"] == []


def test_a_restore_to_a_transaction_gives_the_recorded_tree(own: Archived, tmp_path: Path) -> None:
    here, zxid = own.here, f"0x{own.early.zxid:x}"
    before = {path.name: path.read_bytes() for path in (own.data_dir / "version-2").iterdir()}
    planned = here.json("zookeeper", "restore", "latest", *own.target, "--to-zxid", zxid, "--dry-run")
    assert (planned["verdict"], planned["tree"]["zxid"], planned["refusals"]) == ("planned", zxid, [])
    here.run("zookeeper", "restore", "latest", *own.target, "--to-zxid", zxid, code=3)
    assert {path.name: path.read_bytes() for path in (own.data_dir / "version-2").iterdir()} == before
    done = here.json("zookeeper", "restore", "latest", *own.target, "--to-zxid", zxid, "--yes")
    assert (done["verdict"], done["tree"]["proof"]) == ("proven", "proven")
    assert int(done["tree"]["named_zxid"], 16) > own.late.zxid
    assert logged(served(own, tmp_path).nodes) == logged(own.early.nodes)

    (line,) = here.json("receipts", "list")["restores"]
    assert (line["id"], line["state"], line["drill"]) == (done["restore"], "proven", False)
    facts = here.json("receipts", "show", "latest")["facts"]
    assert (facts["tree at"], facts["journal"]) == (zxid, done["journal"])
    (file,) = done["targets"][0]["files"]
    assert file["sha256"] in facts[f"{own.data_dir} {file['name']}"]

    undone = here.json("zookeeper", "restore", "--rollback", *own.target, "--yes")
    assert (undone["verdict"], undone["journal"], undone["restore"]) == (
        "rolled-back",
        done["journal"],
        done["restore"],
    )
    assert {path.name: path.read_bytes() for path in (own.data_dir / "version-2").iterdir()} == before
    assert [row["state"] for row in here.json("receipts", "list")["restores"]] == ["aborted"]


def test_restored_data_needs_a_new_history_and_prune_tells_what_goes(own: Archived, tmp_path: Path) -> None:
    here = own.here
    here.run("zookeeper", "restore", "latest", *own.target, "--to-zxid", f"0x{own.early.zxid:x}", "--yes")
    with server_on(tmp_path / "server", own.data_dir) as server:
        record(server.client, server.password)
        asked = ("zookeeper", "backup", *own.target, "--zk-host", server.client)
        refused = here.error(*asked, code=31)
        assert (refused["error"], "--new-history" in refused["remedy"]) == ("history-unproven", True)
        assert here.json(*asked, "--new-history")["history"] == "2"
    told = here.json("prune", "--keep-last", "1", "--dry-run")
    assert [re.sub("0x[0-9a-f]+", "Z", span) for span in told["unreachable"]] == ["history 1: Z to Z"]
    assert int(told["unreachable"][0].rsplit(" ", 1)[1], 16) >= own.late.zxid
    done = here.json("prune", "--keep-last", "1", "--yes")
    assert (done["unreachable"], len(done["deleted"])) == (told["unreachable"], 2)
    assert here.json("verify", "--level", "replay")["verdict"] == "good"


def test_what_cannot_be_restored_is_refused(own: Archived, tmp_path: Path) -> None:
    restore = ("zookeeper", "restore", "latest", *own.target)
    beyond = own.here.error(*restore, "--to-zxid", "0xffffff", "--yes", code=30)
    assert "what can be restored to: 0x" in beyond["remedy"]
    two = own.here.error(*restore, "--to-zxid", "1", "--to-time", "2026-11-16T00:00:00Z", code=40)
    assert two["message"] == "--to-zxid and --to-time exclude each other"
    assert own.here.error("zookeeper", "restore", "--continue", *own.target, "--yes", code=40)["error"] == "usage-error"
    with server_on(tmp_path / "server", own.data_dir) as server:
        planned = own.here.json(*restore, "--zk-host", server.client, "--dry-run", code=31)
        assert any(server.client in refusal for refusal in planned["refusals"])
        assert own.here.error(*restore, "--yes", code=31)["error"] == "target-unsafe"


def test_export_and_import_keep_every_byte(own: Archived, tmp_path: Path) -> None:
    here, out = own.here, tmp_path / "bundles"
    exported = here.json("zookeeper", "export", "latest", "--to", str(out), "--compression", "gzip")
    assert Path(exported["bundle"]).parent == out
    imported = here.json("zookeeper", "import", exported["bundle"], "--source", "other")
    assert imported["backup_zxid"] == exported["backup_zxid"]
    (row,) = here.json("list", "--source", "other")["backups"]
    assert (row["id"], row["tags"]) == (imported["id"], [Path(exported["bundle"]).name])
    again = here.json("zookeeper", "export", "latest", "--source", "other", "--to", str(out), "--bundle-id", "again")
    first, second = (_plain(BundleView(Path(one["bundle"]))) for one in (exported, again))
    assert first["snapshots"] == second["snapshots"]
    assert b"".join(first["logs"]) == b"".join(second["logs"])
    told = here.json("verify", "--source", "other", "--level", "replay")
    assert (told["verdict"], told["zookeeper"]["end"]) == ("good", exported["backup_zxid"])


def _plain(view: BundleView) -> dict[str, list[bytes]]:
    """Records without the headers of their files: pieces may be cut in another way."""
    snapshots, logs = list[bytes](), list[bytes]()
    for snapshot in view.snapshots:
        with view.open(snapshot) as file:
            snapshots.append(file.read())
    for log in view.logs:
        with view.open(log) as file:
            logs.append(file.read()[16:])
    return {"snapshots": snapshots, "logs": logs}


def test_a_drill_compares_the_whole_tree_of_a_real_server(own: Archived) -> None:
    told = own.here.json("drill", "latest", "--embedded", "--to-zxid", hex(own.early.zxid))
    assert (told["verdict"], told["tree"]["nodes"]) == ("proven", told["tree"]["nodes_compared"])
    assert told["seconds"] > 0
    (line,) = own.here.json("receipts", "list")["restores"]
    assert (line["state"], line["drill"]) == ("proven", True)
    assert own.here.json("list")["backups"][-1]["last_restore"]["drill"] is True
    assert own.here.error("drill", "--topics", "x", code=40)["error"] == "usage-error"


def test_a_drill_that_finds_another_tree_fails(own: Archived, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real server, of whose answer one node is kept back."""
    real = zookeeper_boot.boot_of

    def lying(version: str, cache: Path, _say: object = None) -> Boot:
        @contextmanager
        def start(data_dir: Path) -> Iterator[BootedServer]:
            with real(version, cache)(data_dir) as server:
                yield _WithoutOne(server)

        return start

    monkeypatch.setattr("logkeep.cli.verbs.zookeeper.drill.boot_of", lying)
    told = own.here.json("drill", code=12)
    assert told["verdict"] == "failed"
    assert any("is not in the server's tree" in finding["what"] for finding in told["findings"])
    assert own.here.json("receipts", "list")["restores"][0]["state"] == "failed"


class _WithoutOne:
    def __init__(self, server: BootedServer) -> None:
        self._server = server

    def nodes(self) -> Iterator[LiveNode]:
        return (node for node in self._server.nodes() if node.path != b"/load1")


def flipped(own: Archived) -> str:
    """One bit of the first log is wrong, which both backups need; what its object is called."""
    shared = min((own.here.root / "repo").rglob("txnlogs/**/*.log"), key=lambda path: path.name)
    whole = bytearray(shared.read_bytes())
    whole[len(whole) // 2] ^= 1
    shared.write_bytes(whole)
    own.here.run("verify", "--level", "data", code=10)
    return str(shared.relative_to(own.here.root / "repo"))


def test_a_repair_looks_first_then_asks_then_mends_all_backups(own: Archived) -> None:
    name, here = flipped(own), own.here
    before = here.tree()
    lost = here.json("zookeeper", "repair", "--dry-run", code=10)
    assert ([one["kind"] for one in lost["objects"]], len(lost["lost"])) == (["left"], 1)
    foreseen = here.json("zookeeper", "repair", *own.target, "--dry-run", code=2)
    here.run("zookeeper", "repair", *own.target, code=3)
    assert here.tree() == before
    done = here.json("zookeeper", "repair", *own.target, "--yes", code=2)
    for told in (foreseen, done):
        assert [(one["kind"], one["object"], one["lost"]) for one in told["objects"]] == [("spliced", name, [])]
    assert (done["verdict"], done["also"]) == ("good", [{"id": own.backups[0], "verdict": "good"}])
    assert name in here.tree()
    assert {row["health"] for row in here.json("list")["backups"]} == {"good"}
    assert here.json("zookeeper", "repair")["objects"] == []
    proven = here.json("verify", "--level", "replay")["zookeeper"]
    assert (proven["condition"], proven["quality"], proven["digests_compared"] > 0) == ("partial", 95, True)


def test_what_nobody_has_is_given_up_only_when_that_is_said(own: Archived) -> None:
    flipped(own)
    before = own.here.tree()
    own.here.run("zookeeper", "repair", "--yes", code=10)
    assert own.here.tree() == before
    done = own.here.json("zookeeper", "repair", "--accept-loss", "--yes", code=10)
    (one,) = done["objects"]
    assert (one["kind"], len(one["new_objects"]), one["lost"]) == ("split", 2, done["lost"])
    assert "lost-transactions" in {finding["code"] for finding in done["findings"]}


def test_the_next_backup_copies_again_what_is_damaged(own: Archived, tmp_path: Path) -> None:
    name = flipped(own)
    with server_on(tmp_path / "server", own.data_dir) as server:
        done = own.here.json("zookeeper", "backup", *own.target, "--zk-host", server.client, code=2)
    assert [(one["code"], one["where"]) for one in done["findings"]] == [("copied-again", name)]
    for backup in (*own.backups, done["id"]):
        assert own.here.json("verify", str(backup), "--level", "replay")["verdict"] == "good"
