"""The salvage command as a user types it, on disks that were made by hand."""

import os
from pathlib import Path

import pytest

from logkeep.kafka.client.topology import TopicPartition
from tests.e2e.test_bad_input import in_namespace, one_error
from tests.support.cli.filled_repository import Filled, tree
from tests.support.cli.processes import REAL, logkeep
from tests.support.kafka.broker_disks import add_log, flip, made_disk, run_of
from tests.support.kafka.whole_backups import new_place

LOG = TopicPartition("orders", 0)
_SALVAGE = ("kafka", "salvage", "--source", "prod", "--log-dirs")


@pytest.fixture
def repo(tmp_path: Path) -> Filled:
    made = Filled(tmp_path / "home")
    made.home.mkdir()
    new_place(made.root)
    return made


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    root = made_disk(tmp_path / "disk", watermarks={LOG: 40})
    add_log(root, "orders-0", [run_of(0, 30), run_of(30, 60)])
    return root


def test_dry_run_salvage_and_what_reads_it(repo: Filled, disk: Path) -> None:
    before = tree(repo.root)
    foreseen = repo.json(*_SALVAGE, str(disk), "--dry-run", code=2)
    assert tree(repo.root) == before
    done = repo.json(*_SALVAGE, str(disk), "--id", "77", "--tag", "disaster", code=2)
    assert (foreseen["id"], done["id"], done["new_offsets"], foreseen["new_offsets"]) == (None, 77, 60, 60)
    assert done["new_bytes"] == foreseen["new_bytes"]
    assert {f["code"] for f in done["findings"]} == {"unproven-tail", "metadata-missing", "positions-incomplete"}
    assert repo.listed() == [77]
    assert "unproven end" in repo.run("info", "77").stdout
    repo.run("verify", "77", "--level", "data")


def test_lost_records_end_with_21(repo: Filled, disk: Path) -> None:
    flip(disk / "orders-0" / f"{0:020d}.log", 70)
    foreseen = repo.json(*_SALVAGE, str(disk), "--dry-run", code=21)
    done = repo.json(*_SALVAGE, str(disk), code=21)
    assert foreseen["gaps"] == done["gaps"]
    assert "orders/0 [0, 5): " in done["gaps"][0]
    assert "is damaged at byte 0" in done["gaps"][0]
    assert repo.json(*_SALVAGE, str(disk), "--source", "other", "--allow-gaps", code=2)["gaps"]


def test_a_read_only_disk_is_enough(repo: Filled, disk: Path) -> None:
    mount = f'mount --bind "{disk}" "{disk}" && mount -o remount,ro,bind "{disk}"'
    done = in_namespace(repo, mount, *_SALVAGE, str(disk))
    assert done.returncode == 2, done.stderr


def test_a_file_that_may_not_be_read_is_named(repo: Filled, disk: Path) -> None:
    """As a user without rights: root reads everything."""
    forbidden = disk / "orders-0" / f"{30:020d}.log"
    forbidden.chmod(0)
    powerless = ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if os.geteuid() == 0 else ()
    done = logkeep(*_SALVAGE, str(disk), home=repo.home, program=(*powerless, *REAL), env={"LOGKEEP_REPO": repo.url})
    said = one_error(done.stderr)
    assert repo.listed() == []
    assert (done.returncode, str(forbidden) in said, "Permission denied" in said) == (40, True, True), said


@pytest.mark.parametrize(("names", "said"), [((), "no directory"), (("nowhere",), "no such directory")])
def test_no_disk_no_backup(repo: Filled, names: tuple[str, ...], said: str) -> None:
    before = tree(repo.root)
    words = ("kafka", "salvage", *(w for name in names for w in ("--log-dirs", name)))
    assert said in one_error(repo.run(*words, code=40).stderr)
    assert tree(repo.root) == before
