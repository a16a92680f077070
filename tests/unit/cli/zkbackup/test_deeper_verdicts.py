"""Damage that a verification found stays until one as deep finds the backup whole, or a repair mends it."""

import json
from pathlib import Path
from typing import Any

import pytest

from logkeep.cli.zkbackup.verification import verdict
from tests.support.cli.bundle_documents import zkbackup
from tests.support.zookeeper.handmade_directories import MadeServer, bundled
from tests.support.zookeeper.repaired_backups import byte_in


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """Two backups of the same, of which the newer one is damaged in every file, at unchanged sizes."""
    server, base = MadeServer(tmp_path / "server", zxid=8), tmp_path / "backups"
    server.snapshot(0)
    server.log(range(1, 9), creating=True)
    for name in ("b1", "b2"):
        bundled(server, base, name)
        assert _verified(base / name, "replay")[0] == 0
    for kept in ("snapshots/snapshot.0", "txnlogs/log.1"):
        _flip(base / "b2" / kept, byte_in(1) if "log" in kept else 20)
    return base


def _flip(path: Path, at: int) -> None:
    path.chmod(0o600)
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


def _verified(bundle: Path, level: str, *more: str) -> tuple[int, dict[str, Any]]:
    flags = (f"--backup-dir={bundle}", f"--level={level}", "--format=json", *more)
    ended = zkbackup("verify", *flags, home=bundle.parent.parent)
    return ended.returncode, json.loads(ended.stdout)


def _statuses(base: Path) -> dict[str, str]:
    said = json.loads(zkbackup("list", f"--backup-base-dir={base}", "--format=json", home=base.parent).stdout)
    return {one["backup_id"]: one["status"] for one in said["backups"]}


def test_a_shallow_look_does_not_unsay_it_and_prune_keeps_the_good_one(base: Path) -> None:
    assert _verified(base / "b2", "replay")[0] == 10
    code, said = _verified(base / "b2", "files")
    assert (code, said["status"], said["quality_score"], said["restorable"]) == (10, "damaged", 0, False)
    assert said["found_before"] == {"condition": "damaged", "score": 0, "level": "replay"}
    assert "damaged-before" in {finding["code"] for finding in said["findings"]}
    assert _statuses(base) == {"b1": "valid", "b2": "damaged"}
    flags = ("--keep-count=1", "--keep-min-count=1", "--force")
    zkbackup("prune", f"--backup-base-dir={base}", *flags, home=base.parent)
    assert "b1" in _statuses(base)


def test_the_words_say_what_was_found_before_and_how_to_look_again(base: Path) -> None:
    _verified(base / "b2", "data")
    text = zkbackup("verify", f"--backup-dir={base / 'b2'}", "--level=files", home=base.parent).stdout
    assert "level data found damage before; level files is not deep enough to clear it" in text
    assert "damaged, quality 0/100" in text
    assert f"zkbackup verify --backup-dir {base / 'b2'} --level data\n" in text


def test_a_shallow_look_tells_no_success_to_the_metrics(base: Path) -> None:
    _verified(base / "b2", "replay")
    file = base.parent / "zk.prom"
    _verified(base / "b2", "files", f"--metrics-file={file}")
    assert "verify_last_success_timestamp_seconds{" not in file.read_text()


@pytest.mark.parametrize(("found", "again"), [("files", "files"), ("data", "data"), ("data", "replay")])
def test_a_look_as_deep_or_deeper_replaces_it(base: Path, found: str, again: str) -> None:
    stored = base / "b1" / "txnlogs" / "log.1"
    whole = stored.read_bytes()
    stored.chmod(0o600)
    stored.write_bytes(whole[:-9])
    assert (_verified(base / "b1", found)[0], _statuses(base)["b1"]) == (10, "damaged")
    stored.write_bytes(whole)
    assert (_verified(base / "b1", again)[0], _statuses(base)["b1"]) == (0, "valid")


def test_a_damaged_file_within_is_not_forgotten_either(tmp_path: Path) -> None:
    server = MadeServer(tmp_path / "server", zxid=8)
    server.snapshot(0)
    server.log(range(1, 9), creating=True)
    server.snapshot(5, nodes=range(1, 6))
    view, _ = bundled(server, tmp_path / "backups", "one")
    _flip(view.path / "snapshots" / "snapshot.5", 20)
    _, deep = _verified(view.path, "data")
    code, shallow = _verified(view.path, "files")
    assert deep["status"] == "partial"
    assert (code, shallow["status"], shallow["quality_score"]) == (10, "partial", deep["quality_score"])


def test_a_repair_that_mended_it_replaces_it(base: Path) -> None:
    assert _verified(base / "b2", "replay")[0] == 10
    assert _verified(base / "b2", "files", "--fix")[0] == 2
    assert _statuses(base)["b2"] == "partial"


def test_a_repair_that_found_nothing_to_mend_does_not(base: Path) -> None:
    """What only a replay sees is not mended by writing files again."""
    info = base / "b1" / "metadata" / "backup_info.json"
    document = json.loads(info.read_text())
    document["validation"] |= {"status": "damaged", "quality_score": 0, "level": "replay"}
    info.write_text(json.dumps(document))
    assert _verified(base / "b1", "data", "--fix")[0] == 10
    assert _statuses(base)["b1"] == "damaged"


@pytest.mark.parametrize("level", ["", "deepest"])
def test_a_level_that_nobody_knows_counts_as_the_deepest(base: Path, level: str) -> None:
    info = base / "b1" / "metadata" / "backup_info.json"
    document = json.loads(info.read_text())
    document["validation"] |= {"status": "damaged", "level": level}
    info.write_text(json.dumps(document))
    code, said = _verified(base / "b1", "replay")
    assert (code, said["found_before"]["level"]) == (10, "boot")


def _stored(bundle: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((bundle / "metadata" / "backup_info.json").read_text())
    return dict(document["validation"])


def test_a_shallow_look_that_finds_nothing_worse_leaves_the_deeper_word(base: Path) -> None:
    deep = _stored(base / "b1")
    assert _verified(base / "b1", "files")[0] == 0
    assert _stored(base / "b1") == deep
    assert "verified at level files" in (base / "b1" / "logs" / "verify.log").read_text()


def test_worse_that_a_shallow_look_finds_does_not_make_it_enough_to_unsay_the_rest(tmp_path: Path) -> None:
    """A damaged snapshot, then a log that is gone and comes back: the snapshot is still damaged."""
    server = MadeServer(tmp_path / "server", zxid=8)
    server.snapshot(0)
    server.log(range(1, 9), creating=True)
    server.snapshot(5, nodes=range(1, 6))
    view, _ = bundled(server, tmp_path / "backups", "one")
    _flip(view.path / "snapshots" / "snapshot.5", 20)
    assert _verified(view.path, "data")[1]["status"] == "partial"
    log = view.path / "txnlogs" / "log.1"
    log.rename(tmp_path / "aside")
    assert _verified(view.path, "files")[1]["status"] == "damaged"
    stored = _stored(view.path)
    assert (stored["level"], stored["deeper"]["level"], stored["deeper"]["status"]) == ("files", "data", "partial")
    (tmp_path / "aside").rename(log)
    code, said = _verified(view.path, "files")
    assert (code, said["found_before"]["level"], said["status"]) == (10, "data", "partial")
    assert _statuses(tmp_path / "backups")["one"] == "partial"
    assert _verified(view.path, "data")[0] == 10
    assert "deeper" not in _stored(view.path)


def _verdict(level: str, score: int, condition: str = "partial") -> verdict.StoredVerdict:
    found = verdict.parse_verdict({"level": level, "status": condition, "quality_score": score})
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("stored", "new", "counts", "deeper"),
    [
        ([], ("files", 100, "valid"), ("files", 100), None),
        ([("replay", 100, "valid")], ("files", 100, "valid"), ("replay", 100), None),
        ([("replay", 100, "valid")], ("files", 0, "damaged"), ("files", 0), ("replay", 100)),
        ([("files", 0, "damaged"), ("replay", 100, "valid")], ("files", 100, "valid"), ("replay", 100), None),
        ([("data", 0, "damaged")], ("files", 100, "valid"), ("data", 0), None),
        ([("data", 0, "damaged")], ("data", 100, "valid"), ("data", 100), None),
        ([("data", 90, "partial"), ("boot", 95, "partial")], ("replay", 95, "partial"), ("boot", 95), None),
        ([("data", 90, "partial"), ("boot", 95, "partial")], ("data", 80, "partial"), ("data", 80), ("boot", 95)),
        ([("boot", 100, "damaged")], ("replay", 100, "valid"), ("boot", 100), None),
    ],
)
def test_the_worst_that_stands_counts(
    stored: list[tuple[str, int, str]],
    new: tuple[str, int, str],
    counts: tuple[str, int],
    deeper: tuple[str, int] | None,
) -> None:
    found, beside = verdict.choose_verdict([_verdict(*one) for one in stored], _verdict(*new))
    assert (found.level, found.score) == counts
    assert (None if beside is None else (beside.level, beside.score)) == deeper


@pytest.mark.parametrize("validation", [None, 3, {}, {"status": "lovely"}, {"status": "valid", "quality_score": "x"}])
def test_what_nobody_can_make_sense_of_says_nothing(validation: object) -> None:
    assert verdict.stored_verdicts(validation) == ()
