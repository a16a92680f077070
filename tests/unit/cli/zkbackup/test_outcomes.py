"""How `backup` and `verify` end: what is damaged or lost is in the exit code, in the words and in the score."""

import json
from pathlib import Path

import pytest

from logkeep.cli.zkbackup import backup
from logkeep.cli.zkbackup.backup import exit_code
from logkeep.cli.zkbackup.command import CommandRun
from logkeep.model.findings import Finding, Severity
from logkeep.model.segments import Codec
from logkeep.zookeeper.backup import findings as outcome
from logkeep.zookeeper.backup.run import ZooKeeperBackupDone
from logkeep.zookeeper.model.findings import Class, FileFinding
from logkeep.zookeeper.model.sink import Gathered
from logkeep.zookeeper.verify.run import Level, VerifiedFiles
from logkeep.zookeeper.verify.verdict import JudgedBackup
from tests.support.cli.bundle_documents import zkbackup
from tests.support.zookeeper.handmade_directories import MadeServer, bundled


def judged(*seen: tuple[Class, Severity], restorable: bool = True) -> JudgedBackup:
    told = tuple(FileFinding(kind=kind, severity=severity, where="x", what="") for kind, severity in seen)
    return JudgedBackup(VerifiedFiles(level=Level.DATA, seen=told, restorable=restorable, end=9), 0, 9)


def done(*codes: str, code: int | None = None) -> ZooKeeperBackupDone:
    """With the code that a backup with these findings ends with."""
    findings = [Finding(code=each, severity=Severity.WARNING, where="", what="") for each in codes]
    ended = outcome.exit_code(findings) if code is None else code
    return ZooKeeperBackupDone(
        "one", Gathered(history="1", members=[], snapshots=[], logs=[], findings=findings), ended
    )


@pytest.mark.parametrize(
    ("taken", "checked", "expected"),
    [
        (done(), judged(), 0),
        (done(), judged((Class.SEAL_BROKEN, Severity.DAMAGE)), 10),
        (done(code=2), judged((Class.SNAPSHOT_DAMAGED, Severity.DAMAGE)), 10),
        (done(), judged(restorable=False), 10),
        (done(), judged((Class.WINDOW_OPEN, Severity.WARNING)), 2),
        (done(), judged((Class.AGREEMENT_UNCHECKED, Severity.NOTE)), 0),
        (done("hole"), judged(), 21),
        (done("hole"), judged((Class.SEAL_BROKEN, Severity.DAMAGE)), 21),
        (done(), judged((Class.LOST_TRANSACTIONS, Severity.WARNING)), 21),
        (done(code=21), judged(restorable=False), 21),
        (done("log-overlap"), judged(), 2),
        (done("active-tail"), judged(), 0),
    ],
)
def test_what_a_backup_ends_with(taken: ZooKeeperBackupDone, checked: JudgedBackup, expected: int) -> None:
    assert exit_code(taken, checked, auto_repair=True) == expected


@pytest.mark.parametrize(
    ("checked", "expected"),
    [
        (judged((Class.LOST_TRANSACTIONS, Severity.WARNING)), 10),
        (judged((Class.LOST_MOMENTS, Severity.WARNING)), 10),
        (judged((Class.WINDOW_OPEN, Severity.WARNING)), 2),
        (judged(), 0),
    ],
)
def test_what_a_verification_ends_with(checked: JudgedBackup, expected: int) -> None:
    assert checked.exit_code == expected


def backed_up(server: MadeServer, home: Path, *more: str) -> tuple[int, str]:
    """Nobody answers on that port, which alone is exit 2."""
    flags = (f"--zk-data-dir={server.root / 'data'}", f"--output-dir={home / 'backups'}", "--zk-host=127.0.0.1:1")
    ended = zkbackup("backup", *flags, "--backup-id=one", *more, home=home)
    return ended.returncode, ended.stdout


@pytest.mark.parametrize("verified", ["--verify", "--no-verify"])
def test_transactions_that_an_older_part_lacks(tmp_path: Path, verified: str) -> None:
    server = MadeServer(tmp_path / "server")
    server.snapshot(0)
    server.log(range(1, 51), creating=True)
    server.log(range(61, 101), creating=True)
    server.snapshot(100, nodes=range(1, 101))
    server.log(range(101, 121), creating=True)
    code, text = backed_up(server, tmp_path, verified, f"--metrics-file={tmp_path / 'zk.prom'}")
    assert (code, "transactions are lost" in text, "0x33" in text) == (21, True, True), text
    assert "partial, unproven end, quality 70/100" in text
    assert "\nzkbackup_backup_success 0.0\n" in (tmp_path / "zk.prom").read_text()
    told = zkbackup("verify", f"--backup-dir={tmp_path / 'backups' / 'one'}", "--format=json", home=tmp_path)
    found = json.loads(told.stdout)
    assert (told.returncode, found["status"], found["quality_score"]) == (10, "partial", 70)
    assert found["lost"] == [{"from": "0x33", "to": "0x3c"}]


def test_a_new_backup_that_the_disk_has_damaged_already(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = MadeServer(tmp_path / "server")
    for zxid in (100, 200):
        server.snapshot(zxid, nodes=range(1, zxid + 1))
        server.log(range(zxid + 1, zxid + 101), creating=True)
    whole = backup._checked

    def rotten(run: CommandRun, bundle: Path) -> JudgedBackup:
        stored = bundle / "snapshots" / "snapshot.64.gz"
        content = stored.read_bytes()
        stored.write_bytes(content[:500] + bytes([content[500] ^ 1]) + content[501:])
        return whole(run, bundle)

    monkeypatch.setattr(backup, "_checked", rotten)
    code, text = backed_up(server, tmp_path, f"--metrics-file={tmp_path / 'zk.prom'}")
    assert (code, text.splitlines()[0]) == (10, "❌ Backup written, but a file in it is damaged: one")
    assert "\nzkbackup_backup_success 0.0\n" in (tmp_path / "zk.prom").read_text()


def test_the_remedy_of_a_broken_seal_is_named_and_it_costs_something(tmp_path: Path) -> None:
    server = MadeServer(tmp_path / "server", zxid=4)
    server.snapshot(0)
    server.log(range(1, 5), creating=True)
    view, _ = bundled(server, tmp_path / "backups", "one", codec=Codec.GZIP)
    stored = view.path / "txnlogs" / "log.1.gz"
    stored.chmod(0o600)
    content = stored.read_bytes()
    stored.write_bytes(content[:5] + b"?" + content[6:])
    text = zkbackup("verify", f"--backup-dir={view.path}", home=tmp_path).stdout
    assert "partial, quality 95/100" in text
    assert "Result: ⚠️ the backup can be restored; a file in it is damaged" in text
    advice = [line.strip() for line in text.partition("Advice:")[2].strip().splitlines()]
    command = f"zkbackup verify --backup-dir {view.path} --fix"
    assert advice == ["- nothing is lost; to store the affected files again:", command]
    fixed = zkbackup("verify", f"--backup-dir={view.path}", "--fix", home=tmp_path).stdout
    assert ("partial, quality 95/100" in fixed, "--fix" in fixed) == (True, False), fixed


@pytest.mark.parametrize(("flag", "read"), [("--verify", True), ("--verify=false", False)])
def test_only_what_was_read_back_is_called_validated(tmp_path: Path, flag: str, read: bool) -> None:
    server = MadeServer(tmp_path / "server")
    server.snapshot(0)
    server.log(range(1, 5), creating=True)
    backed_up(server, tmp_path, flag)
    bundle = tmp_path / "backups" / "one"
    stored = json.loads((bundle / "metadata" / "backup_info.json").read_text())["validation"]
    assert (stored["enabled"], stored["level"]) == (read, "data" if read else "files")


@pytest.mark.parametrize(("level", "read"), [("files", False), ("data", True), ("replay", True)])
def test_a_verification_says_whether_it_read_anything(tmp_path: Path, level: str, read: bool) -> None:
    server = MadeServer(tmp_path / "server", zxid=4)
    server.snapshot(0)
    server.log(range(1, 5), creating=True)
    view, _ = bundled(server, tmp_path / "backups", "one")
    assert not view.info.validation.enabled
    told = zkbackup("verify", f"--backup-dir={view.path}", f"--level={level}", "--format=json", home=tmp_path)
    assert json.loads(told.stdout)["validation"]["enabled"] == read
