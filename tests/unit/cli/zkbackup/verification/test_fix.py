"""`verify --fix` and the backups beside a damaged one: the only one that has what was lost is found among many."""

import json
from pathlib import Path

import pytest

from logkeep.cli.zkbackup.verification.fix import neighbours
from logkeep.model.segments import Codec
from logkeep.zookeeper.bundle.view import BundleView
from tests.support.cli.bundle_documents import zkbackup
from tests.support.zookeeper.changed_documents import rewritten
from tests.support.zookeeper.handmade_directories import MadeServer, bundled, content
from tests.support.zookeeper.repaired_backups import byte_in

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
    rewritten(view.path, lambda document: document["files"]["snapshots"][0].update(nodes=90), sealed=True)
    fixed = zkbackup("verify", f"--backup-dir={view.path}", "--fix", "--format=json", home=tmp_path)
    assert "brought back" not in fixed.stdout


def two_snapshots(root: Path, first: int) -> BundleView:
    """0x64 and 0xc8, logs behind `first`, and the older snapshot has a wrong byte that nobody can put right."""
    server = MadeServer(root / "server", zxid=300)
    for zxid in (100, 200):
        server.snapshot(zxid, nodes=range(1, zxid + 1))
        server.log(range(first if zxid == 100 else 201, zxid + 101), creating=True)
    view, _ = bundled(server, root / "backups", "one", codec=Codec.GZIP)
    stored = view.path / "snapshots" / "snapshot.64.gz"
    stored.chmod(0o600)
    whole = stored.read_bytes()
    stored.write_bytes(whole[:500] + bytes([whole[500] ^ 1]) + whole[501:])
    return view


def test_moments_that_a_lost_snapshot_led_to_are_told_for_good(tmp_path: Path) -> None:
    view = two_snapshots(tmp_path, first=101)
    words = ("verify", f"--backup-dir={view.path}", "--format=json")
    before, fixed, again = (json.loads(zkbackup(*words, *more, home=tmp_path).stdout) for more in ([], ["--fix"], []))
    assert [told["exit_code"] for told in (before, fixed, again)] == [10, 10, 10]
    assert "0x64 to 0xc7 can no longer be restored" in fixed["repairs"][0]
    for told in (fixed, again):
        assert ["0x64 to 0xc7" in f["what"] for f in told["findings"] if f["code"] == "lost-moments"] == [True]
        counted = told["validation"]
        assert (counted["total_files"], counted["valid_files"], counted["repaired_files"]) == (4, 3, 0)
        assert (counted["corrupted_files"], counted["unrecoverable_files"]) == (1, 1)
    assert [told["status"] for told in (before, fixed, again)] == ["partial"] * 3
    assert [told["quality_score"] for told in (before, fixed, again)] == [65] * 3
    (note,) = json.loads((view.path / "metadata" / "backup_info.json").read_text())["repairs"]
    assert (note["of"], note["kind"], note["unreachable"]) == (
        "snapshot.64",
        "dropped",
        [{"from": "0x64", "to": "0xc7"}],
    )
    shown = zkbackup("info", "one", f"--backup-base-dir={view.path.parent}", home=tmp_path).stdout
    assert "Logs: ⚠️ the snapshot that an older part needs is lost" in zkbackup(*words[:2], home=tmp_path).stdout
    assert ("Lost: 1" in shown, "Repaired: 0" in shown, "a gap in an older part" in shown) == (True, True, True), shown


def test_a_lost_snapshot_that_nothing_needs_costs_no_moment(tmp_path: Path) -> None:
    view = two_snapshots(tmp_path, first=1)
    fixed = zkbackup("verify", f"--backup-dir={view.path}", "--fix", "--format=json", home=tmp_path)
    told = json.loads(fixed.stdout)
    assert (fixed.returncode, told["status"], told["quality_score"]) == (2, "partial", 95)
    assert "every point in time can be restored without it" in told["repairs"][0]
    assert (told["validation"]["repaired_files"], told["validation"]["unrecoverable_files"]) == (0, 1)
    assert zkbackup("verify", f"--backup-dir={view.path}", home=tmp_path).returncode == 0
