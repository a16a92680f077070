"""Every key of the configuration file does something: each is set, and what it changes is seen."""

import json
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from logkeep.cli.zkbackup import backup
from logkeep.cli.zkbackup.verification import run as verify_run
from logkeep.engine.threads import ThreadedEngine
from logkeep.formats.zookeeper.txnlog import scan
from logkeep.zookeeper.backup import source_file
from tests.support.cli.bundle_documents import PROGRAM, put
from tests.support.cli.forker import ForkedProcess
from tests.support.cli.processes import clean_environment
from tests.support.cli.zkbackup_server import Served

pytestmark = pytest.mark.xdist_group("zookeeper-e2e")


@pytest.fixture
def still(shop: Served) -> Served:
    """A copy of the server's files that no server writes to, named by the configuration; the server answers."""
    copytree(shop.server.data_dir, shop.home / "data")
    copytree(shop.server.log_dir, shop.home / "datalog")
    return shop


def _configured(shop: Served, **sections: dict[str, object]) -> None:
    """A zkbackup.yaml in the working directory; JSON is YAML."""
    here = {"data_dir": str(shop.home / "data"), "log_dir": str(shop.home / "datalog"), "host": shop.server.client}
    whole: dict[str, dict[str, object]] = {"zookeeper": {**here}, "backup": {"base_dir": str(shop.base)}}
    for name, keys in sections.items():
        whole[name] = {**whole.get(name, {}), **keys}
    (shop.home / "zkbackup.yaml").write_text(json.dumps(whole))


def _stored(bundle: str) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in Path(bundle, "txnlogs").iterdir()}


def test_directories_host_and_base_come_from_the_file(still: Served) -> None:
    _configured(still)
    taken = still.json("backup", env={"ZKBACKUP_BACKUP_BASE_DIR": ""})
    assert Path(taken["backup_dir"]).parent == still.base
    assert taken["zookeeper"]["data_dir"] == str(still.home / "data" / "version-2")
    assert taken["zookeeper"]["log_dir"] == str(still.home / "datalog" / "version-2")
    assert (taken["zookeeper"]["host"], taken["zookeeper"]["version"]) == (still.server.client, "3.9.5")


@pytest.mark.parametrize(("compression", "suffix"), [("none", ""), ("gzip", ".gz"), ("zstd", ".zst")])
def test_compression(still: Served, compression: str, suffix: str) -> None:
    _configured(still, backup={"compression": compression})
    taken = still.json("backup")
    entries = [*taken["files"]["snapshots"], *taken["files"]["txnlogs"]]
    assert {entry["stored_name"].removeprefix(entry["name"]) for entry in entries} == {suffix}
    assert all(entry["stored_size"] == entry["size"] for entry in entries) == (compression == "none")
    assert still.json("verify", "--backup-dir", taken["backup_dir"])["status"] == "valid"


def test_compression_level(still: Served) -> None:
    sizes = []
    for level in (1, 9):
        _configured(still, backup={"compression_level": level})
        sizes.append(sum(_stored(still.json("backup", f"--backup-id=level{level}")["backup_dir"]).values()))
    assert sizes[0] > sizes[1]


def test_auto_verify(still: Served) -> None:
    levels = []
    for wanted in (True, False):
        _configured(still, backup={"auto_verify": wanted})
        levels.append(still.json("backup", f"--backup-id=v{wanted}")["validation"]["level"])
    assert levels == ["data", "files"]
    assert still.json("backup", "--backup-id=flag", "--verify")["validation"]["level"] == "data"


def _torn(shop: Served) -> None:
    """The newest log ends within a record, as it does while a server writes it."""
    newest = max((shop.home / "datalog" / "version-2").glob("log.*"), key=lambda path: int(path.suffix[1:], 16))
    used = newest.read_bytes().rstrip(b"\0")
    newest.write_bytes(used + b"\x00\x00\x00\x00\x12\x34\x56\x78\x00\x00\x01\x00" + b"\x01" * 20)


def test_auto_repair_calls_a_trimmed_end_fine(still: Served) -> None:
    _torn(still)
    _configured(still, backup={"auto_repair": True})
    taken = still.json("backup", "--backup-id=fine")
    assert [f["code"] for f in taken["findings"]] == ["active-tail"]
    _configured(still, backup={"auto_repair": False})
    still.json("backup", "--backup-id=not-fine", code=2)


def test_max_txn_record_size(still: Served) -> None:
    _configured(still, advanced={"max_txn_record_size": 600})
    done = still.json("backup", code=21)
    assert "lost-transactions" in {f["code"] for f in done["findings"]}


@pytest.fixture
def deaf() -> Iterator[str]:
    """Somebody who takes calls and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


def test_timeout(still: Served, deaf: str) -> None:
    """With a limit the backup does not wait for a server that does not answer, and says that it is unproven."""
    _configured(still, zookeeper={"timeout": 1, "host": deaf})
    taken = still.json("backup", code=2)
    assert "server-unreachable" in {f["code"] for f in taken["findings"]}


def test_validation_timeout(still: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """A verification that never ends is ended, and has failed."""
    _configured(still)
    bundle = still.json("backup")["backup_dir"]  # it verifies too, which may take longer than the limit
    _configured(still, advanced={"validation_timeout": 1})
    monkeypatch.setattr(verify_run, "verify", lambda *_words, **_more: threading.Event().wait())
    said = json.loads(still.run("verify", "--backup-dir", bundle, "--format=json", code=10).stderr)
    assert (said["category"], said["message"]) == ("validation", "the verification was not finished within 1 s")


def test_copy_buffer_size_and_concurrent_copies(still: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked for is what the copying is told."""
    chunks, parallel = [], []

    def spying_scan(*words: Any, **more: Any) -> Any:
        chunks.append(more["chunk_bytes"])
        return scan(*words, **more)

    def spying_engine(at_once: int, **more: Any) -> Any:
        parallel.append(at_once)
        return ThreadedEngine(at_once, **more)

    monkeypatch.setattr(source_file, "scan", spying_scan)
    monkeypatch.setattr(backup, "ThreadedEngine", spying_engine)
    _configured(still, advanced={"copy_buffer_size": 8192}, backup={"concurrent_copies": 3})
    assert still.json("backup")["status"] == "valid"
    assert (set(chunks), parallel) == ({8192}, [3])


@pytest.mark.parametrize("key", ["require_confirmation", "verify_before_restore", "backup_before_restore"])
def test_restore_keys(still: Served, key: str) -> None:
    _configured(still)
    bundle = Path(still.json("backup", "--compression=none")["backup_dir"])
    for name in ("new", "newlog"):
        (still.home / name).mkdir()
    words = ("restore", f"--backup-dir={bundle}", f"--zk-data-dir={still.home / 'new'}",
             f"--zk-log-dir={still.home / 'newlog'}", "--zk-host=127.0.0.1:1")  # fmt: skip
    if key == "require_confirmation":
        still.run(*words, code=3)
        _configured(still, restore={key: False})
        still.run(*words)
        assert list((still.home / "new" / "version-2").glob("snapshot.*"))
        return
    _configured(still, restore={key: False})
    if key == "backup_before_restore":
        said = still.run(*words, "--force", "--format=json", code=40)
        assert json.loads(said.stderr)["category"] == "configuration"
        return
    # With its verification a damaged file is noticed before anything else; without, the replay meets it.
    damaged = max((bundle / "txnlogs").iterdir(), key=lambda path: int(path.suffix[1:], 16))
    damaged.write_bytes(damaged.read_bytes()[:-40] + b"\xff" * 40)
    without = still.run(*words, "--force", code=10).stderr
    _configured(still, restore={key: True})
    verified = still.run(*words, "--force", code=30).stderr
    assert "warning: " in verified
    assert "warning: " not in without


def test_prune_keys(still: Served) -> None:
    put(still.base, "new"), put(still.base, "older", days=3), put(still.base, "oldest", days=5)
    _configured(still, prune={"keep_days": 2, "keep_min_count": 1})
    still.run("prune", code=3)
    assert still.json("prune", "--dry-run")["to_delete"] == ["older", "oldest"]
    _configured(still, prune={"keep_days": 2, "keep_min_count": 2, "require_confirmation": False})
    assert still.json("prune")["deleted"] == ["oldest"]


def test_logging_level_format_output_and_file(still: Served) -> None:
    log = still.home / "logs" / "zk.log"
    _configured(still, logging={"level": "debug", "format": "json", "output": "file", "file": str(log)})
    still.json("backup", "--backup-id=a")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert {line["level"] for line in lines} >= {"debug", "info"}
    assert log.stat().st_mode & 0o777 == 0o600
    log.unlink()
    _configured(still, logging={"level": "error", "format": "text", "output": "file", "file": str(log)})
    still.json("backup", "--backup-id=b")
    assert not log.read_text()


def test_logging_to_stdout_and_stderr(still: Served) -> None:
    _configured(still, logging={"output": "stdout"})
    done = still.run("backup", "--backup-id=a")
    assert "backup began" in done.stdout
    assert "backup began" not in done.stderr
    assert "backup began" in still.run("backup", "--backup-id=b", "--format=json").stderr
    _configured(still, logging={"output": "stderr", "level": "info"})
    done = still.run("backup", "--backup-id=c")
    assert "backup began" in done.stderr
    assert "backup began" not in done.stdout


def test_metrics_file(still: Served) -> None:
    metrics = still.home / "zk.prom"
    _configured(still, metrics={"file": str(metrics)})
    bundle = still.json("backup")["backup_dir"]
    still.run("verify", "--backup-dir", bundle)
    still.run("backup", f"--backup-id={Path(bundle).name}", code=40)
    text = metrics.read_text()
    for line in (
        "zkbackup_backup_success 0.0",
        "zkbackup_backup_success_total 1.0",
        "zkbackup_backup_failure_total 1.0",
    ):
        assert f"\n{line}\n" in text
    assert "zkbackup_verify_corrupted_files 0.0" in text
    assert f'logkeep_backup_success{{source="{still.server.client}"}} 1.0' in text


def test_several_at_the_same_time(still: Served) -> None:
    """Under different ids; an id that is there already is refused."""
    _configured(still)
    env = clean_environment(still.home)
    started = [
        ForkedProcess([*PROGRAM, "backup", f"--backup-id=n{number}", "--quiet"], env=env, cwd=still.home,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for number in range(2)
    ]  # fmt: skip
    said = [process.communicate(timeout=120)[0].decode() for process in started]
    assert [process.returncode for process in started] == [0, 0], said
    still.run("backup", "--backup-id=n0", code=40)
