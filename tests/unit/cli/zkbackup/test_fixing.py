"""`verify --fix` and the backups beside a damaged one: the only one that has what was lost is found among many."""

import json
from pathlib import Path

import pytest

from logkeep.cli.zkbackup.fixing import neighbours
from logkeep.model.segments import Codec
from logkeep.zookeeper.bundle.view import BundleView
from tests.unit.cli.zkbackup.bundles import zkbackup
from tests.zookeeper.directories import MadeServer, bundled, content
from tests.zookeeper.mended import byte_in

NEWER = 12


@pytest.fixture
def many(tmp_path: Path) -> BundleView:
    """One that is damaged, an older one with everything, and more newer ones that have only the end of its log."""
    server, base = MadeServer(tmp_path / "server", zxid=8), tmp_path / "backups"
    server.snapshot(0)
    server.log(range(1, 9), creating=True)
    bundled(server, base, "a-older")
    view, _ = bundled(server, base, "b-damaged")
    server.snapshot(5, nodes=range(1, 6))
    (server.snapshot_dir / "snapshot.0").unlink()
    (server.log_dir / "log.1").unlink()
    server.log(range(6, 9), creating=True)
    for number in range(NEWER):
        bundled(server, base, f"c-newer-{number}")
    stored = view.path / "txnlogs" / "log.1"
    stored.chmod(0o600)
    stored.write_bytes(stored.read_bytes()[: byte_in(1)] + b"?" + stored.read_bytes()[byte_in(1) + 1 :])
    return view


def test_all_backups_beside_it_are_asked(many: BundleView, tmp_path: Path) -> None:
    expected = content(BundleView(many.path.parent / "a-older"))
    ended = zkbackup("verify", f"--backup-dir={many.path}", "--fix", "--format=json", home=tmp_path)
    told = json.loads(ended.stdout)
    assert ended.returncode == 2, told
    assert "another backup" in told["repairs"][0]
    assert content(BundleView(many.path)) == expected


def test_damaged_backups_are_asked_last(many: BundleView) -> None:
    base = many.path.parent
    for info in base.glob("*/metadata/backup_info.json"):
        document = json.loads(info.read_text())
        document["validation"]["status"] = "damaged" if "newer-5" in str(info) else "valid"
        info.write_text(json.dumps(document))
    (base / "c-newer-10" / "metadata" / "backup_info.json").write_text("{")
    names = [view.path.name for view in neighbours(many.path)]
    assert len(names) == NEWER
    assert (names[-2:], set(names) & {many.path.name, "c-newer-10"}) == (["a-older", "c-newer-5"], set())


def test_what_was_damaged_in_its_packing_gives_what_is_left(tmp_path: Path) -> None:
    server = MadeServer(tmp_path / "server", zxid=4000)
    server.snapshot(0)
    server.log(range(1, 4001), creating=True)
    view, _ = bundled(server, tmp_path / "backups", "one", codec=Codec.GZIP)
    stored = view.path / "txnlogs" / "log.1.gz"
    stored.chmod(0o600)
    whole = stored.read_bytes()
    middle = len(whole) // 2
    stored.write_bytes(whole[:middle] + bytes(16) + whole[middle + 16 :])
    ended = zkbackup("verify", f"--backup-dir={view.path}", "--fix", "--format=json", home=tmp_path)
    assert ended.returncode == 10
    first, *_ = BundleView(view.path).logs
    assert first.first == 1
    assert first.last > 1000, "half of the packed bytes come before the damage"


@pytest.mark.parametrize("leaf", ["txnlogs/log.1.gz", "snapshots/snapshot.0.gz"])
def test_what_nothing_depends_on_is_told_and_written_again(tmp_path: Path, leaf: str) -> None:
    """A byte of gzip's head: all that is packed can be read, and another tool may still stumble over it."""
    server = MadeServer(tmp_path / "server", zxid=4)
    server.snapshot(0)
    server.log(range(1, 5), creating=True)
    view, _ = bundled(server, tmp_path / "backups", "one", codec=Codec.GZIP)
    stored = view.path / leaf
    stored.chmod(0o600)
    whole = stored.read_bytes()
    stored.write_bytes(whole[:5] + b"?" + whole[6:])
    seen = zkbackup("verify", f"--backup-dir={view.path}", "--format=json", home=tmp_path)
    assert (seen.returncode, "seal-broken" in seen.stdout) == (10, True), seen.stdout
    fixed = zkbackup("verify", f"--backup-dir={view.path}", "--fix", "--format=json", home=tmp_path)
    assert fixed.returncode == 2, fixed.stdout
    assert "trimmed" not in fixed.stdout
    again = zkbackup("verify", f"--backup-dir={view.path}", "--format=json", home=tmp_path)
    assert again.returncode in (0, 2), again.stdout
    assert "seal-broken" not in again.stdout


def test_a_snapshot_of_which_other_things_are_said_is_not_brought_back_from_itself(tmp_path: Path) -> None:
    server = MadeServer(tmp_path / "server", zxid=4)
    server.snapshot(0)
    server.log(range(1, 5), creating=True)
    view, _ = bundled(server, tmp_path / "backups", "one", codec=Codec.GZIP)
    info = view.path / "metadata" / "backup_info.json"
    document = json.loads(info.read_text())
    document["files"]["snapshots"][0]["nodes"] += 90
    info.chmod(0o600)
    info.write_text(json.dumps(document))
    fixed = zkbackup("verify", f"--backup-dir={view.path}", "--fix", "--format=json", home=tmp_path)
    assert "brought back" not in fixed.stdout
