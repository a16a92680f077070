"""What goes wrong at the edges: a clear error, the right exit code, nothing lost and nothing left behind."""

import gzip
import json
import os
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from tests.support.cli.zkbackup_server import Served
from tests.support.zookeeper.changed_documents import rewritten
from tests.support.zookeeper.slow_log import good_records

pytestmark = pytest.mark.xdist_group("zookeeper-e2e")


def _error(shop: Served, *words: str, code: int) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(shop.run(*words, "--format=json", code=code).stderr.splitlines()[-1])
    assert said["exit_code"] == code
    assert said["remedy"]
    return said


def test_directories_that_are_none_of_zookeepers(shop: Served) -> None:
    (shop.home / "empty").mkdir()
    for name in ("nowhere", "empty"):
        said = _error(shop, "backup", f"--zk-data-dir={shop.home / name}", "--output-dir=out", code=40)
        assert said["category"] == "user"
    assert not list(shop.base.glob("*"))


def test_what_is_missing_is_named(shop: Served) -> None:
    assert "--zk-data-dir" in _error(shop, "backup", f"--output-dir={shop.base}", code=40)["message"]
    assert "--backup-dir" in _error(shop, "verify", code=40)["message"]
    assert "--backup-dir" in _error(shop, "restore", *shop.flags, code=40)["message"]
    shop.base.mkdir(exist_ok=True)
    assert "nightly" in _error(shop, "info", "nightly", code=40)["context"]["subject"]
    assert _error(shop, "info", "../x", code=40)["category"] == "user"
    assert "bakup" in shop.run("bakup", code=40).stderr
    assert "did you mean --zk-host?" in shop.run("backup", "--zk-hst=x", code=40).stderr


def test_an_output_that_cannot_be_written(shop: Served) -> None:
    (shop.home / "file").touch()
    said = _error(shop, "backup", *shop.flags, f"--output-dir={shop.home / 'file'}", code=20)
    assert said["category"] == "io"


def test_no_server_answers(shop: Served) -> None:
    _begin_log(shop)  # where a snapshot ends the history, its digest proves the end
    taken = shop.json("backup", *shop.places, "--zk-host=127.0.0.1:1", code=2)
    assert "server-unreachable" in {finding["code"] for finding in taken["findings"]}
    assert taken["status"] in {"valid", "partial"}
    (listed,) = shop.json("list")["backups"]
    assert (listed["unproven_end"], shop.json("info", listed["backup_id"])["unproven_end"]) == (True, True)
    assert "valid, unproven end" in shop.run("list").stdout
    assert "valid, unproven end" in shop.run("info", listed["backup_id"]).stdout
    assert "unproven" not in shop.run("backup", *shop.flags, "--backup-id=asked").stdout


def test_lost_transactions_in_the_source(shop: Served) -> None:
    """A record that others follow is damaged: what is there is kept, and what is not is told."""
    _begin_log(shop)
    copytree(shop.server.data_dir, shop.home / "data")
    copytree(shop.server.log_dir, shop.home / "datalog")
    _rot(_newest_log(shop.home / "datalog"))
    flags = (f"--zk-data-dir={shop.home / 'data'}", f"--zk-log-dir={shop.home / 'datalog'}")
    taken = shop.json("backup", *flags, f"--zk-host={shop.server.client}", code=21)
    assert "lost-transactions" in {finding["code"] for finding in taken["findings"]}
    assert shop.json("list")["backups"][0]["status"] == "damaged"


def _newest_log(directory: Path) -> Path:
    return max((directory / "version-2").glob("log.*"), key=lambda path: int(path.suffix[1:], 16))


def _begin_log(shop: Served) -> None:
    """With some records in it: a lone one could be one that is being written, which is no damage."""
    shop.begin_log()
    shop.fill("/more", 2)
    shop.empty("/more")


@pytest.fixture
def bundle(shop: Served) -> Path:
    _begin_log(shop)
    return Path(shop.backup("--backup-id=one", "--compression=none")["backup_dir"])


def _rot(log: Path) -> None:
    """Damage the last record that others follow: it lies behind what any snapshot holds."""
    content = bytearray(log.read_bytes())
    content[good_records(bytes(content))[-2].position + 30] ^= 0xFF
    log.write_bytes(content)


def _newest(bundle: Path) -> Path:
    return max((bundle / "txnlogs").iterdir(), key=lambda path: int(path.name.split(".")[1], 16))


def test_damage_in_a_bundle_and_its_honest_repair(shop: Served, bundle: Path) -> None:
    """No other backup has the record: it is named as lost, and stays named."""
    rotten = _newest(bundle)
    _rot(rotten)
    content = rotten.read_bytes()
    found = shop.json("verify", f"--backup-dir={bundle}", code=10)
    assert (found["status"], found["restorable"], found["quality_score"]) == ("damaged", False, 0)
    fixed = shop.json("verify", f"--backup-dir={bundle}", "--fix", code=10)
    assert fixed["repairs"]
    assert (bundle / "damaged" / rotten.name).read_bytes() == content
    again = shop.json("verify", f"--backup-dir={bundle}", code=10)
    assert again["status"] == "damaged"
    assert json.loads((bundle / "metadata" / "backup_info.json").read_text())["repairs"][0]["lost"]


def test_a_neighbour_gives_back_what_was_lost(shop: Served, bundle: Path) -> None:
    other = Path(shop.backup("--backup-id=two")["backup_dir"])
    before = (bundle / "txnlogs" / _newest(bundle).name).read_bytes()
    _rot(_newest(bundle))
    fixed = shop.json("verify", f"--backup-dir={bundle}", "--fix", code=2)
    assert (fixed["status"], fixed["restorable"], fixed["quality_score"]) == ("partial", True, 95)
    assert "another backup" in fixed["repairs"][0]
    assert shop.json("verify", f"--backup-dir={bundle}")["status"] == "partial"
    entry = json.loads((bundle / "metadata" / "backup_info.json").read_text())["files"]["txnlogs"][-1]
    assert entry["size"] == len(before)
    assert shop.json("verify", f"--backup-dir={other}")["status"] == "valid"
    assert [one["status"] for one in shop.json("list")["backups"]].count("partial") == 1


def test_a_damaged_document(shop: Served, bundle: Path) -> None:
    (bundle / "metadata" / "backup_info.json").write_text("{")
    for words in (("info", "one"), ("verify", f"--backup-dir={bundle}")):
        assert _error(shop, *words, code=10)["category"] == "corruption"
    restoring = ("restore", f"--backup-dir={bundle}", *shop.places, "--force")
    assert _error(shop, *restoring, code=10)["category"] == "corruption"
    assert shop.json("list")["backups"][0]["status"] == "damaged"


def test_a_bundle_that_cannot_be_written_to_is_verified_all_the_same(shop: Served, bundle: Path) -> None:
    (bundle / "metadata").chmod(0o500)
    (bundle / "logs").chmod(0o500)
    try:
        found = shop.json("verify", f"--backup-dir={bundle}")
    finally:
        (bundle / "metadata").chmod(0o700)
        (bundle / "logs").chmod(0o700)
    assert found["status"] == "valid"
    if os.geteuid() != 0:
        assert json.loads((bundle / "metadata" / "backup_info.json").read_text())["validation"]["level"] == "data"


def test_what_is_missing_beside_the_data_and_what_is_too_much(shop: Served, bundle: Path) -> None:
    (bundle / "metadata" / "MANIFEST.txt").unlink()
    (bundle / "txnlogs" / "log.77.bak").write_bytes(b"x")
    found = shop.json("verify", f"--backup-dir={bundle}", "--level=files", code=2)
    assert {(f["code"], f["where"]) for f in found["findings"]} == {
        ("object-missing", "metadata/MANIFEST.txt"), ("stray-file", "txnlogs/log.77.bak"),
    }  # fmt: skip
    assert (found["status"], found["restorable"]) == ("valid", True)


def test_configuration_is_kept_without_its_secrets(shop: Served) -> None:
    conf = shop.home / "conf"
    conf.mkdir()
    (conf / "zoo.cfg").write_text("clientPort=2181\nssl.keyStore.password=hunter2\nmetricsProvider.token=hunter2\n")
    (conf / "zk.keytab").write_bytes(b"ticket")
    (conf / "server.jks").write_bytes(b"keys")
    bundle = Path(shop.backup("--include-config", f"--zk-conf-dir={conf}")["backup_dir"])
    kept = bundle / "config" / "zoo.cfg"
    assert "clientPort=2181" in kept.read_text()
    assert "hunter2" not in "".join(p.read_text(errors="replace") for p in bundle.rglob("*") if p.is_file())
    assert kept.stat().st_mode & 0o777 == 0o600
    manifest = (bundle / "metadata" / "MANIFEST.txt").read_text()
    assert "zk.keytab" in manifest
    assert "server.jks" in manifest
    secret = Path(shop.backup("--include-secrets", f"--zk-conf-dir={conf}", "--backup-id=all")["backup_dir"])
    assert (secret / "config" / "server.jks").read_bytes() == b"keys"
    assert "hunter2" in (secret / "config" / "zoo.cfg").read_text()
    assert not (secret / "config" / "zk.keytab").exists()


def test_a_moment_that_is_not_held(shop: Served, bundle: Path) -> None:
    words = ("restore", f"--backup-dir={bundle}", f"--zk-data-dir={shop.home}", "--zk-host=127.0.0.1:1", "--dry-run")
    said = _error(shop, *words, "--to-zxid=0x7fffffff", code=30)
    assert "what can be restored to: 0x" in said["remedy"]
    assert _error(shop, *words, "--to-zxid=1", "--to-time=2026-01-01T00:00:00Z", code=40)["category"] == "user"


def test_a_moment_in_between(shop: Served, bundle: Path) -> None:
    """To a zxid, by both of its names and in both notations; to a time."""
    target = shop.home / "target"
    target.mkdir()
    nowhere = ("--zk-host=127.0.0.1:1", "--dry-run")
    words = ("restore", f"--backup-dir={bundle}", f"--zk-data-dir={target}", f"--zk-log-dir={target}", *nowhere)
    for flag in ("--to-zxid=0x60", "--truncate-to-zxid=96"):
        assert shop.json(*words, flag)["stands_at"]["hex"] == "0x60"
    plan = shop.json(*words, "--to-zxid=0x60")
    time_ms = plan["stands_at"]["time_ms"]
    later = shop.json(*words, f"--to-time={time_ms}")
    assert later["stands_at"]["decimal"] >= 0x60
    assert later["next_left_out"]["time_ms"] > time_ms
    beyond = shop.json(*words, "--to-time=2099-01-01T00:00:00Z")
    assert "time-behind-the-end" in [finding["code"] for finding in beyond["findings"]]
    assert "time-behind-the-end" not in [finding["code"] for finding in later["findings"]]
    assert not list(target.iterdir())


def test_a_time_that_damage_has_taken_away(shop: Served, bundle: Path) -> None:
    """Never silently an earlier tree; what lies before the damage can be had."""
    target = shop.home / "target"
    target.mkdir()
    places = (f"--zk-data-dir={target}", f"--zk-log-dir={target}", "--zk-host=127.0.0.1:1")
    words = ("restore", f"--backup-dir={bundle}", *places, "--dry-run")
    last, early = (shop.json(*words, *flags)["stands_at"] for flags in ((), ("--to-zxid=0x20",)))
    _rot(_newest(bundle))
    said = _error(shop, *words, f"--to-time={last['time_ms']}", code=30)
    assert last["hex"] in said["message"]
    assert "--to-zxid 0x" in said["remedy"]
    assert shop.json(*words, f"--to-time={early['time_ms']}")["stands_at"]["decimal"] >= 0x20


def test_an_end_that_no_file_holds(shop: Served, bundle: Path) -> None:
    """Its files are whole, and the document still tells what the backup was taken up to."""
    gone = json.loads((bundle / "metadata" / "backup_info.json").read_text())["files"]["txnlogs"][-1]
    rewritten(bundle, lambda document: document["files"]["txnlogs"].pop(), sealed=True)
    (bundle / "txnlogs" / gone["stored_name"]).unlink()
    found = shop.json("verify", f"--backup-dir={bundle}", code=10)
    assert (found["status"], found["restorable"]) == ("damaged", False)
    assert [f["code"] for f in found["findings"] if f["severity"] == "damage"]
    words = ("restore", f"--backup-dir={bundle}", f"--zk-data-dir={shop.home}", "--zk-host=127.0.0.1:1", "--dry-run")
    _error(shop, *words, code=30)


def test_a_backup_without_its_document_can_be_taken_anew(shop: Served) -> None:
    """As the error says: its files are unpacked, and backed up."""
    taken = shop.backup("--backup-id=one")
    bundle, rescued = Path(taken["backup_dir"]), shop.home / "rescued" / "version-2"
    (bundle / "metadata" / "backup_info.json").unlink()
    for words in (("info", "one"), ("verify", f"--backup-dir={bundle}")):
        assert "`zkbackup backup`" in _error(shop, *words, code=10)["remedy"]
    rescued.mkdir(parents=True)
    for file in (*(bundle / "snapshots").iterdir(), *(bundle / "txnlogs").iterdir()):
        (rescued / file.stem).write_bytes(gzip.decompress(file.read_bytes()))
    anew = shop.json("backup", f"--zk-data-dir={rescued}", "--zk-host=127.0.0.1:1", "--backup-id=two", code=2)
    assert (anew["backup_zxid"], anew["status"]) == (taken["backup_zxid"], "valid")
