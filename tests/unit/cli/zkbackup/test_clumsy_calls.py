"""Calls that a tired person makes: what is said leads to the way out, and nothing is crossed out by one bad thing."""

import json
import shlex
from pathlib import Path

import pytest

from tests.support.cli.bundle_documents import put, zkbackup
from tests.support.zookeeper.handmade_directories import MadeServer, bundled
from tests.unit.cli.zkbackup.test_outcomes import backed_up


@pytest.fixture
def server(tmp_path: Path) -> MadeServer:
    made = MadeServer(tmp_path / "server", zxid=8)
    made.snapshot(0)
    made.log(range(1, 9), creating=True)
    return made


def test_a_backup_that_may_not_be_entered_hides_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("mine", "theirs"):
        put(tmp_path, name, days=1)
    is_file = Path.is_file

    def looked_at(path: Path) -> bool:
        if "theirs" in path.parts:
            raise PermissionError(13, "Permission denied")
        return is_file(path)

    monkeypatch.setattr(Path, "is_file", looked_at)
    ended = zkbackup("list", f"--backup-base-dir={tmp_path}", "--format=json", home=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert {one["backup_id"] for one in json.loads(ended.stdout)["backups"]} == {"mine", "theirs"}


@pytest.mark.parametrize("place", ["afile", "/proc/nowhere"])
def test_an_output_directory_that_cannot_be_one(server: MadeServer, tmp_path: Path, place: str) -> None:
    (tmp_path / "afile").write_text("x")
    flags = (f"--zk-data-dir={server.root / 'data'}", "--zk-host=127.0.0.1:1", f"--output-dir={tmp_path / place}")
    ended = zkbackup("backup", *flags, home=tmp_path)
    assert (ended.returncode, "name a directory for backups" in ended.stderr) == (20, True), ended.stderr


def test_an_id_that_is_taken(server: MadeServer, tmp_path: Path) -> None:
    backed_up(server, tmp_path)
    flags = (f"--zk-data-dir={server.root / 'data'}", "--zk-host=127.0.0.1:1", f"--output-dir={tmp_path / 'backups'}")
    ended = zkbackup("backup", *flags, "--backup-id=one", home=tmp_path)
    assert (ended.returncode, "another --backup-id" in ended.stderr) == (40, True)


def test_a_directory_of_configuration_that_is_not_there(server: MadeServer, tmp_path: Path) -> None:
    flags = (f"--zk-data-dir={server.root / 'data'}", "--zk-host=127.0.0.1:1", f"--output-dir={tmp_path / 'backups'}")
    ended = zkbackup("backup", *flags, "--include-config", "--zk-conf-dir=nope", home=tmp_path)
    assert (ended.returncode, "zoo.cfg" in ended.stderr) == (40, True)
    assert not (tmp_path / "backups").exists()


def test_the_number_of_the_server_is_kept_wherever_the_rest_of_its_configuration_lies(
    server: MadeServer, tmp_path: Path
) -> None:
    (server.root / "data" / "myid").write_text("3\n")
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "zoo.cfg").write_text("tickTime=2000\n")
    code, text = backed_up(server, tmp_path, "--include-config", f"--zk-conf-dir={tmp_path / 'conf'}")
    kept = json.loads((tmp_path / "backups" / "one" / "metadata" / "backup_info.json").read_text())["files"]["config"]
    assert (code, sorted(kept)) == (2, ["myid", "zoo.cfg"])
    assert "Config:     2 files copied" in text


def test_a_stray_file_is_not_configuration(server: MadeServer, tmp_path: Path) -> None:
    (server.snapshot_dir / "log.1.bak").write_bytes(b"ZKLG")
    code, text = backed_up(server, tmp_path)
    assert (code, "Config:     not copied" in text, "log.1.bak" in text) == (2, True, True)


def test_next_steps_can_be_pasted(server: MadeServer, tmp_path: Path) -> None:
    output = tmp_path / "b sp" / "ünï 'q'"
    flags = (f"--zk-data-dir={server.root / 'data'}", "--zk-host=127.0.0.1:1", f"--output-dir={output}")
    text = zkbackup("backup", *flags, "--backup-id=one", home=tmp_path).stdout
    steps = [shlex.split(line) for line in text.splitlines() if line.startswith("  zkbackup ")]
    assert steps == [
        ["zkbackup", "verify", "--backup-dir", str(output / "one")],
        ["zkbackup", "info", "one", "--backup-base-dir", str(output)],
    ]
    for _, *arguments in steps:
        assert zkbackup(*arguments, home=tmp_path).returncode in {0, 2}


def test_names_for_a_script_have_no_log_between_them(tmp_path: Path) -> None:
    put(tmp_path / "backups", "one", days=1)
    (tmp_path / "zkbackup.yaml").write_text("logging:\n  output: stdout\n  level: debug\n")
    ended = zkbackup("list", f"--backup-base-dir={tmp_path / 'backups'}", "--format=simple", home=tmp_path)
    assert (ended.returncode, ended.stdout) == (0, "one\n")


def test_a_backup_that_nobody_has_read_back_is_listed_as_that(server: MadeServer, tmp_path: Path) -> None:
    backed_up(server, tmp_path, "--no-verify")
    base = f"--backup-base-dir={tmp_path / 'backups'}"
    (one,) = json.loads(zkbackup("list", base, "--format=json", home=tmp_path).stdout)["backups"]
    assert (one["status"], one["read_back"]) == ("valid", False)
    assert "valid, not read back" in zkbackup("list", base, home=tmp_path).stdout
    assert "valid, not read back" in zkbackup("info", "one", base, home=tmp_path).stdout
    zkbackup("verify", f"--backup-dir={tmp_path / 'backups' / 'one'}", "--level=data", home=tmp_path)
    assert "not read back" not in zkbackup("list", base, home=tmp_path).stdout


def test_a_header_that_was_written_anew_is_no_damaged_file(server: MadeServer, tmp_path: Path) -> None:
    log = server.log_dir / "log.1"
    log.write_bytes(b"XXXX" + log.read_bytes()[4:])
    view, done = bundled(server, tmp_path / "backups", "one")
    assert (done.exit_code, [entry.status for entry in view.info.files.txnlogs]) == (2, ["repaired"])
    text = zkbackup("verify", f"--backup-dir={view.path}", home=tmp_path).stdout
    assert "every record is here" in text
    assert "damaged file" not in text
    validation = json.loads((view.path / "metadata" / "backup_info.json").read_text())["validation"]
    assert (validation["corrupted_files"], validation["unrecoverable_files"]) == (1, 0)
