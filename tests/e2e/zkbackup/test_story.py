"""A night and a morning with real servers: back up, look, lose something, restore, undo, prune."""

import json
from pathlib import Path

import pytest

from tests.support.cli.zkbackup_server import ROLLING, Served, served

pytestmark = pytest.mark.xdist_group("zookeeper-e2e")


@pytest.mark.parametrize("version", ["3.4.14", "3.9.5"])
def test_from_a_backup_to_a_rollback(tmp_path: Path, version: str) -> None:
    with served(tmp_path, version, ROLLING) as shop:
        shop.fill("/shop", 150)
        before = shop.tree()
        taken = shop.backup("--backup-id=nightly")
        _fields_of_the_design(taken, shop, version)
        assert taken["status"] == "valid"
        shop.empty("/shop")
        shop.fill("/rubbish", 20)
        after = shop.tree()
        _looked_at(shop, "boot" if version == "3.9.5" else "replay")
        _refused_while_it_runs(shop)
        shop.server.stop()
        _restored(shop)
        shop.server.start()
        assert shop.tree() == before
        shop.server.stop()
        said = shop.run("restore", "--rollback", *shop.flags, "--force").stdout
        assert "the earlier data is back in place" in said
        shop.server.start()
        assert shop.tree() == after


def _fields_of_the_design(taken: dict[str, object], shop: Served, version: str) -> None:
    bundle = Path(str(taken["backup_dir"]))
    assert bundle == shop.base / "nightly"
    assert taken["backup_id"] == "nightly"
    stored = json.loads((bundle / "metadata" / "backup_info.json").read_text())
    wanted = {
        "version",
        "backup_id",
        "backup_timestamp",
        "backup_zxid",
        "zookeeper",
        "files",
        "validation",
        "statistics",
    }
    assert {*wanted, "validation"} <= stored.keys() <= taken.keys()
    assert stored["zookeeper"]["version"] == version
    assert stored["backup_zxid"]["hex"] == hex(stored["backup_zxid"]["decimal"])
    assert {"name", "zxid", "size", "checksum"} <= stored["files"]["snapshots"][0].keys()
    log = stored["files"]["txnlogs"][0]
    assert {"name", "start_zxid", "end_zxid", "size", "status", "transaction_count", "checksum"} <= log.keys()
    counts = {"enabled", "total_files", "valid_files", "corrupted_files", "repaired_files", "unrecoverable_files"}
    assert counts <= stored["validation"].keys()
    assert {"total_size", "compressed_size", "duration_seconds"} <= stored["statistics"].keys()
    files = {str(path.relative_to(bundle)) for path in bundle.rglob("*") if path.is_file()}
    metadata = ("backup_info.json", "MANIFEST.txt", "zk_mntr.txt", "zk_stat.txt", "zk_conf.txt")
    assert {f"metadata/{name}" for name in metadata} | {"logs/backup.log", "logs/verify.log"} <= files
    assert {path.split("/")[0] for path in files} == {"metadata", "logs", "snapshots", "txnlogs"}
    assert all(path.endswith(".gz") for path in files if path.startswith(("snapshots", "txnlogs")))


def _looked_at(shop: Served, level: str) -> None:
    bundle = shop.base / "nightly"
    verified = shop.json("verify", f"--backup-dir={bundle}", f"--level={level}")
    assert (verified["status"], verified["restorable"], verified["quality_score"]) == ("valid", True, 100)
    assert verified["transactions"] > 150
    text = shop.run("verify", f"--backup-dir={bundle}", "--level=data").stdout
    assert "the backup can be restored" in text
    (listed,) = shop.json("list")["backups"]
    assert (listed["backup_id"], listed["status"]) == ("nightly", "valid")
    known = shop.json("info", "nightly")
    assert (known["status"], known["quality_score"], known["location"]) == ("valid", 100, str(bundle))
    assert known["validation"]["level"] == level, "the shallower look behind it found nothing worse"
    assert "Quality score: 100/100" in shop.run("info", "nightly").stdout


def _refused_while_it_runs(shop: Served) -> None:
    bundle = f"--backup-dir={shop.base / 'nightly'}"
    done = shop.run("restore", bundle, *shop.flags, "--force", "--format=json", code=31)
    assert json.loads(done.stderr)["category"] == "user"
    assert "stop the server" in done.stderr
    dry = shop.json("restore", bundle, *shop.flags, "--dry-run", code=31)
    assert dry["obstacles"]


def _restored(shop: Served) -> None:
    bundle = f"--backup-dir={shop.base / 'nightly'}"
    plan = shop.run("restore", bundle, *shop.flags, "--dry-run").stdout
    assert "Restore plan" in plan
    before = sorted(path.name for path in shop.server.data_dir.rglob("*"))
    asked = shop.run("restore", bundle, *shop.flags, code=3)
    assert "--force" in asked.stderr
    assert sorted(path.name for path in shop.server.data_dir.rglob("*")) == before
    done = shop.run("restore", bundle, *shop.flags, "--force").stdout
    assert "Restore completed" in done
    assert "zkbackup restore --rollback" in done
