"""`zkbackup list` and `zkbackup prune` on documents."""

import fcntl
import json
import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from logkeep.cli.zkbackup.leftovers import find_leftovers, remove_bundle
from tests.support.cli.bundle_documents import PROGRAM, put, zkbackup
from tests.support.cli.processes import clean_environment, logkeep


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tmp_path / "backups"


def _ids(base: Path, *flags: str) -> list[str]:
    done = zkbackup("list", "--backup-base-dir", str(base), "--format=simple", *flags, home=base.parent)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_order_and_limit(base: Path) -> None:
    put(base, "a", days=3, size=10, zxid=7)
    put(base, "b", days=2, size=30, zxid=5)
    put(base, "c", days=1, size=20, zxid=6)
    assert _ids(base) == ["c", "b", "a"]
    assert _ids(base, "--sort-by=size") == ["b", "c", "a"]
    assert _ids(base, "--sort-by", "zxid", "--limit", "2") == ["a", "c"]


def test_twenty_are_shown_and_all_when_asked(base: Path) -> None:
    for number in range(22):
        put(base, f"b{number:02}", days=number)
    assert len(_ids(base)) == 20
    assert len(_ids(base, "--limit=0")) == 22
    told = zkbackup("list", "--backup-base-dir", str(base), home=base.parent).stdout
    assert "Backups: 22" in told
    assert "and 2 more" in told


def test_the_table(base: Path) -> None:
    put(base, "backup-20250115-103000", size=105_381_888, zxid=0x500000001)
    put(base, "backup-20250113-020000", days=2, status="partial")
    put(base, "backup-20250112-020000", days=3, status="damaged")
    done = zkbackup("list", "--backup-base-dir", str(base), home=base.parent, env={"LC_ALL": "C.UTF-8"})
    assert "│ backup-20250115-103000 │ " in done.stdout
    assert "│ 0x500000001 │ 100.5 MiB │ ✅ valid" in done.stdout
    assert "⚠️ partial" in done.stdout
    assert "❌ damaged" in done.stdout
    rows = [line for line in done.stdout.splitlines() if line.startswith("│")]
    assert len(rows) == 4
    plain = zkbackup("list", "--backup-base-dir", str(base), home=base.parent, env={"LC_ALL": "C"})
    assert plain.stdout.isascii()
    assert "[ok] valid" in plain.stdout


def test_json_has_the_fields(base: Path) -> None:
    put(base, "one", size=5, zxid=0x500000001)
    done = zkbackup("list", "--backup-base-dir", str(base), "--output-format=json", home=base.parent)
    said = json.loads(done.stdout)
    assert (said["backup_base_dir"], said["total"]) == (str(base), 1)
    (one,) = said["backups"]
    assert (one["backup_id"], one["size"], one["status"]) == ("one", 5, "valid")
    assert one["backup_zxid"] == {"hex": "0x500000001", "decimal": 21474836481}
    assert one["backup_dir"] == str(base / "one")


_BROKEN = (None, "", "{}", "[]", '{"backup_timestamp": 3}', '{"backup_timestamp": "x", "backup_zxid": {}}')


@pytest.mark.parametrize("content", _BROKEN)
def test_a_broken_document_is_a_damaged_backup(base: Path, content: str | None) -> None:
    file = put(base, "broken") / "metadata" / "backup_info.json"
    file.unlink()
    for name in ("snapshots", "txnlogs"):
        (base / "broken" / name).mkdir()
    if content is not None:
        file.write_text(content)
    said = json.loads(zkbackup("list", "--backup-base-dir", str(base), "--format=json", home=base.parent).stdout)
    assert said["backups"][0]["status"] == "damaged"
    assert "backup_info.json" in said["backups"][0]["problem"]


def test_what_is_no_backup_is_not_listed(base: Path) -> None:
    put(base, "good"), put(base, ".half.partial"), put(base, "not a name")
    (base / "file").touch()
    (base / "photos" / "snapshots").mkdir(parents=True)
    (base / "link").symlink_to(base / "good")
    assert _ids(base) == ["good"]


def test_data_is_never_read(base: Path) -> None:
    """A list of large backups is a list of documents: no other file of a backup is opened."""
    (put(base, "big") / "txnlogs").mkdir()
    (base / "big" / "txnlogs" / "log.1").write_bytes(b"x")
    hook = "import sys; sys.addaudithook(lambda e, a: print(a[0], file=sys.stderr) if e == 'open' else None)"
    code = f"{hook}; from logkeep.cli.zkbackup.main import main; main()"
    program = (sys.executable, "-c", code)
    done = logkeep("list", "--backup-base-dir", str(base), home=base.parent, program=program)
    opened = [line for line in done.stderr.splitlines() if line.startswith(str(base / "big"))]
    assert opened == [str(base / "big" / "metadata" / "backup_info.json")]


def test_no_such_directory(base: Path) -> None:
    done = zkbackup("list", "--backup-base-dir", str(base), "--format", "json", home=base.parent)
    said = json.loads(done.stderr)
    assert (done.returncode, said["category"], said["context"]["subject"]) == (40, "io", str(base))


def test_prune_deletes_what_the_rules_say(base: Path) -> None:
    for days in range(1, 11):
        put(base, f"b{days:02}", days=days + 0.1, status="damaged" if days == 9 else "valid", size=1024)
    done = zkbackup("prune", "--backup-base-dir", str(base), "--force", "--format=json", home=base.parent)
    said = json.loads(done.stdout)
    assert done.returncode == 0
    assert said["deleted"] == ["b07", "b08", "b10"]
    assert (said["skipped"], said["freed_bytes"], said["total"]) == (["b09"], 3072, 10)
    assert _ids(base) == ["b01", "b02", "b03", "b04", "b05", "b06", "b09"]
    again = zkbackup("prune", "--backup-base-dir", str(base), "--force", "--delete-damaged", home=base.parent)
    assert "Deleted: 1 backup" in again.stdout
    assert _ids(base) == ["b01", "b02", "b03", "b04", "b05", "b06"]
    assert not list(base.glob(".*"))


def test_what_is_freed_is_what_was_stored(base: Path) -> None:
    put(base, "new")
    info = put(base, "old", days=30, size=1 << 30) / "metadata" / "backup_info.json"
    document = json.loads(info.read_text())
    document["statistics"]["compressed_size"] = 5 << 20
    info.write_text(json.dumps(document))
    flags = ("prune", "--backup-base-dir", str(base), "--keep-min-count=1")
    planned = zkbackup(*flags, "--dry-run", home=base.parent).stdout
    assert ("Will free: 5.0 MiB" in planned, "GiB" in planned) == (True, False), planned
    assert json.loads(zkbackup(*flags, "--dry-run", "--format=json", home=base.parent).stdout)["freed_bytes"] == 5 << 20
    assert "Freed: 5.0 MiB" in zkbackup(*flags, "--force", home=base.parent).stdout


def test_prune_asks_and_without_a_terminal_changes_nothing(base: Path) -> None:
    put(base, "new"), put(base, "old", days=30)
    flags = ("prune", "--backup-base-dir", str(base), "--keep-min-count=1")
    done = zkbackup(*flags, home=base.parent)
    assert done.returncode == 3
    assert "--force" in done.stderr
    assert len(_ids(base)) == 2
    allowed = zkbackup(*flags, home=base.parent, env={"ZKBACKUP_PRUNE_REQUIRE_CONFIRMATION": "false"})
    assert (allowed.returncode, _ids(base)) == (0, ["new"])


@pytest.mark.parametrize(("reply", "code", "left"), [("no\n", 3, 2), ("yes\n", 0, 1), ("\n", 3, 2)])
def test_prune_at_a_terminal(base: Path, reply: str, code: int, left: int) -> None:
    put(base, "new"), put(base, "old", days=30)
    leader, follower = pty.openpty()
    command = [*PROGRAM, "prune", "--backup-base-dir", str(base), "--keep-min-count", "1"]
    process = subprocess.Popen(
        command, env=clean_environment(base.parent), stdin=follower, stdout=subprocess.PIPE, stderr=follower
    )
    os.close(follower)
    os.write(leader, reply.encode())
    try:
        process.communicate(timeout=300)
        seen = os.read(leader, 100_000).decode()
    finally:
        os.close(leader)
    assert process.returncode == code
    assert "delete 1 backup of" in seen
    assert "older than 7 days" in seen
    assert len(_ids(base)) == left


def test_a_dry_run_deletes_nothing(base: Path) -> None:
    put(base, "new"), put(base, "old", days=30)
    done = zkbackup("prune", "--backup-base-dir", str(base), "--keep-min-count=1", "--dry-run", home=base.parent)
    assert done.returncode == 0
    assert "old" in done.stdout
    assert "dry run" in done.stdout
    assert len(_ids(base)) == 2


def test_an_interrupted_prune_is_finished_by_the_next(base: Path) -> None:
    put(base, "new")
    left, half = put(base, ".deleted-old"), base / ".deleted-older"
    (half / "metadata").mkdir(parents=True)
    flags = ("prune", "--backup-base-dir", str(base))
    seen = zkbackup(*flags, "--dry-run", home=base.parent).stdout
    asked = zkbackup(*flags, home=base.parent)
    assert all(name in text for name in (left.name, half.name) for text in (seen, asked.stderr))
    assert (asked.returncode, left.exists()) == (3, True)
    assert zkbackup(*flags, "--force", home=base.parent).returncode == 0
    assert not left.exists()
    assert not half.exists()


@pytest.mark.parametrize("document", [True, False])
def test_whatever_a_killed_prune_leaves_is_known_by_the_next(base: Path, document: bool) -> None:
    """The removal is stopped before each of its steps."""
    for step in range(40):
        bundle = _filled(base / f".deleted-{step}", document=document)
        with pytest.MonkeyPatch.context() as patch:
            whole = _stopped_after(step, patch, bundle)
        assert find_leftovers(base, datetime.now(UTC)) == ([] if whole else [bundle]), step
        if whole:
            break
        shutil.rmtree(bundle)
    assert step > 10


def _filled(bundle: Path, *, document: bool) -> Path:
    files = (
        "snapshots/snapshot.1",
        "txnlogs/log.1",
        "txnlogs/log.2",
        "config/zoo.cfg",
        "logs/backup.log",
        "metadata/x",
    )
    for name in (*files, *(["metadata/backup_info.json"] if document else [])):
        (bundle / name).parent.mkdir(parents=True, exist_ok=True)
        (bundle / name).touch()
    return bundle


def _stopped_after(steps: int, patch: pytest.MonkeyPatch, bundle: Path) -> bool:
    """Whether it came to its end."""
    left = iter(range(steps))

    def counted(real: Callable[..., None]) -> Callable[..., None]:
        def one(*words: Any, **more: Any) -> None:
            if next(left, None) is None:
                raise KeyboardInterrupt
            real(*words, **more)

        return one

    for name in ("unlink", "rmdir"):
        patch.setattr(os, name, counted(getattr(os, name)))
    try:
        remove_bundle(bundle)
    except KeyboardInterrupt:
        return False
    return True


def test_what_is_no_backup_is_never_deleted(base: Path) -> None:
    """Whatever its name and age, and with every flag that deletes."""
    put(base, "new")
    strange = [base / "precious" / "photos" / "a", base / ".deleted-notes" / "n", base / ".important.partial" / "i"]
    strange += [base / ".x.partial" / "logs" / "mine", base / ".deleted-y" / "snapshots" / "mine.jpg"]
    for file in strange:
        file.parent.mkdir(parents=True)
        file.touch()
    for directory in base.iterdir():
        os.utime(directory, (0, 0))
    flags = ("--force", "--delete-damaged", "--keep-days=1", "--format=json")
    said = json.loads(zkbackup("prune", "--backup-base-dir", str(base), *flags, home=base.parent).stdout)
    assert (said["total"], said["to_delete"], said["left_over"]) == (1, [], [])
    assert all(file.exists() for file in strange)


def test_what_a_backup_left_that_was_killed_early_goes(base: Path) -> None:
    put(base, "new")
    early = base / ".early.partial"
    for name in ("snapshots/snapshot.5f.token", ".partial/token"):
        (early / name).parent.mkdir(parents=True)
        (early / name).touch()
    os.utime(early, (0, 0))
    zkbackup("prune", "--backup-base-dir", str(base), "--force", home=base.parent)
    assert not early.exists()


def test_what_a_killed_backup_left_goes_unless_it_is_young_or_at_work(base: Path) -> None:
    put(base, "new")
    old, young, at_work = (put(base, f".{name}.partial") for name in ("old", "young", "at-work"))
    for path in (old, at_work):
        os.utime(path, (0, 0))
    descriptor = os.open(at_work, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        done = zkbackup("prune", "--backup-base-dir", str(base), "--force", "--format=json", home=base.parent)
    finally:
        os.close(descriptor)
    assert json.loads(done.stdout)["left_over"] == [".old.partial"]
    assert [path.exists() for path in (old, young, at_work)] == [False, True, True]


def test_a_link_inside_a_backup_is_not_followed(base: Path) -> None:
    put(base, "new")
    outside = base.parent / "precious"
    outside.mkdir()
    (outside / "file").touch()
    (put(base, "old", days=30) / "link").symlink_to(outside)
    zkbackup("prune", "--backup-base-dir", str(base), "--keep-min-count=1", "--force", home=base.parent)
    assert (outside / "file").exists()
    assert _ids(base) == ["new"]
