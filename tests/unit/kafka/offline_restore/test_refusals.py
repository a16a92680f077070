"""What is not safe is refused before anything is changed, and the refusal says how to go on."""

import fcntl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import pytest

from logkeep.directories.folder import Folder
from logkeep.errors import Locked, LogDirUnusable, LogkeepError, TargetUnsafe, UsageError
from logkeep.kafka.disks.layout import LogDirState, log_directory
from logkeep.kafka.disks.metadata_image import ClusterImage
from logkeep.kafka.offline_restore import staging
from logkeep.kafka.offline_restore.locks import broker_stopped, exclude_other_restores
from logkeep.kafka.offline_restore.log_folders import open_root
from logkeep.kafka.offline_restore.run import preview
from logkeep.kafka.offline_restore.safety import check_configs, check_topics, removing_configs
from logkeep.kafka.offline_restore.staging import leftovers, staged_name
from logkeep.kafka.offline_restore.values import DirectoryState, LogEnd, OfflineRestorePlan
from logkeep.model.time import random_token
from tests.support.kafka.handmade_batches import dense
from tests.support.kafka.offline_restore import (
    TARGET_ID,
    Backed,
    backed_up,
    logs_in,
    made_target,
    offline,
    tree,
    wished,
)

_HOLDER = """
import fcntl, sys
with open(sys.argv[1], "r+b") as file:
    fcntl.lockf(file, fcntl.LOCK_EX)
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def _running(root: Path) -> Iterator[None]:
    """Another process that locks the directory as a broker does."""
    command = [sys.executable, "-c", _HOLDER, str(root / ".lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield
        process.stdin.close()


@pytest.fixture
def backed(tmp_path: Path) -> Backed:
    batches = [dense(base, 5).encode() for base in range(0, 40, 5)]
    return backed_up(tmp_path, {"orders-0": batches, "orders-1": batches, "users-0": batches})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return made_target(tmp_path / "data", ["orders-0", "orders-1", "users-0"])


def _foreseen(backed: Backed, *roots: Path, **wish: object) -> OfflineRestorePlan:
    return preview(wished(backed.backup, roots, **wish), backed.place, random_token)


def _refused(kind: type[LogkeepError], backed: Backed, *roots: Path, **wish: object) -> str:
    before = [tree(root) for root in roots]
    with pytest.raises(kind) as refused:
        offline(backed.place, backed.backup, roots, **wish)
    assert [tree(root) for root in roots] == before
    return f"{refused.value} {refused.value.remedy}"


def test_a_running_broker(backed: Backed, root: Path) -> None:
    with _running(root):
        assert "kafka-server-stop.sh" in _refused(TargetUnsafe, backed, root)
        assert _foreseen(backed, root).running
    assert not _foreseen(backed, root).running
    assert offline(backed.place, backed.backup, [root]).good


def test_no_broker_starts_while_one_of_several_holders_is_left(root: Path) -> None:
    """Tasks end one after the other in the process that holds the lock as well."""
    with broker_stopped([open_root(root)]):
        with broker_stopped([open_root(root)]):
            pass
        code = "import fcntl,sys; fcntl.lockf(open(sys.argv[1],'r+b'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
        tried = subprocess.run([sys.executable, "-c", code, str(root / ".lock")], capture_output=True, check=False)
        assert b"BlockingIOError" in tried.stderr


def test_another_restore(backed: Backed, root: Path) -> None:
    with exclude_other_restores([open_root(root)]):
        assert "another restore" in _refused(Locked, backed, root)
    with (root / ".lock").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_topics_that_were_not_made_yet(backed: Backed, tmp_path: Path) -> None:
    bare = made_target(tmp_path / "bare", ["users-0"])
    said = _refused(TargetUnsafe, backed, bare)
    assert "orders-0, orders-1" in said
    assert "--dry-run prints every step" in said
    assert "kafka-topics.sh" in _foreseen(backed, bare).procedure
    assert _foreseen(backed, bare).elsewhere == ("orders-0", "orders-1")
    report = offline(backed.place, backed.backup, [bare], here_only=True)
    assert [log.topic for log in report.logs] == ["users"]
    assert report.plan.elsewhere == ("orders-0", "orders-1")


def test_a_directory_without_its_topic_id_is_none(backed: Backed, root: Path) -> None:
    (root / "orders-1" / "partition.metadata").unlink()
    assert "orders-1" in _refused(TargetUnsafe, backed, root)


def test_records_that_are_there(backed: Backed, root: Path) -> None:
    (root / "users-0" / f"{0:020d}.log").write_bytes(dense(0, 3).encode())
    assert "users-0 already hold records" in _refused(TargetUnsafe, backed, root)
    foreseen = _foreseen(backed, root)
    standings = {log.name: log.state for log in foreseen.logs}
    assert standings == {
        "orders-0": DirectoryState.EMPTY,
        "orders-1": DirectoryState.EMPTY,
        "users-0": DirectoryState.RECORDS,
    }
    (users,) = [log for log in foreseen.logs if log.topic == "users"]
    assert {f.name: f.size_bytes for f in users.old_files}[f"{0:020d}.log"] == 82
    assert offline(backed.place, backed.backup, [root], replace=True).good


def test_what_was_written_since_is_not_ours(backed: Backed, root: Path) -> None:
    offline(backed.place, backed.backup, [root])
    with next((root / "users-0").glob("*.log")).open("ab") as file:
        file.write(dense(40, 1).encode())
    assert "users-0 already hold records" in _refused(TargetUnsafe, backed, root)


def test_a_partition_in_two_directories(backed: Backed, root: Path, tmp_path: Path) -> None:
    other = made_target(tmp_path / "other", ["users-0"])
    assert "two directories" in _refused(TargetUnsafe, backed, root, other)


@pytest.mark.parametrize(
    ("wish", "says"),
    [
        ({"include": ("nothing",)}, "no topic of the backup matches nothing"),
        ({"include": ("(",)}, "is not a pattern"),
        ({"partitions": ("7",)}, "no topic has partition 7"),
        ({"renames": ("orders=users",)}, "would both become users"),
        ({"renames": ("orders=../etc",)}, "not a valid topic name"),
        ({"until_offsets": ("orders:0=41",)}, "offset 41 is outside of the backup's range"),
        ({"ends": (LogEnd("orders", 0, -1),)}, "cannot end at -1"),
    ],
)
def test_wishes_that_make_no_sense(backed: Backed, root: Path, wish: dict[str, object], says: str) -> None:
    assert says in _refused(UsageError, backed, root, **wish)


def test_a_directory_of_no_broker(backed: Backed, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    assert "meta.properties" in _refused(LogDirUnusable, backed, tmp_path / "plain")


@pytest.mark.parametrize(
    ("configs", "wrong"),
    [
        ({"retention.ms": "-1"}, []),
        ({"retention.ms": "-1", "retention.bytes": "-1", "cleanup.policy": "delete"}, []),
        ({}, ["retention.ms=unset"]),
        ({"retention.ms": "1000"}, ["retention.ms=1000"]),
        ({"retention.ms": "-1", "retention.bytes": "5"}, ["retention.bytes=5"]),
        ({"retention.ms": "-1", "cleanup.policy": "compact,delete"}, ["cleanup.policy=compact,delete"]),
    ],
)
def test_topics_that_would_remove_what_is_restored(
    backed: Backed, root: Path, configs: dict[str, str], wrong: list[str]
) -> None:
    assert removing_configs(configs) == wrong
    logs = _foreseen(backed, root, include=("users",)).logs
    image = ClusterImage(configs={"users": configs})
    if wrong:
        with pytest.raises(TargetUnsafe, match="as soon as the broker starts"):
            check_configs(image, logs)
    else:
        check_configs(image, logs)


def test_directories_of_topics_that_are_gone_or_made_again(backed: Backed, root: Path) -> None:
    logs = _foreseen(backed, root, include=("users",)).logs
    check_topics(None, logs)
    check_topics(ClusterImage(topics={"users": TARGET_ID}), logs)
    for topics, says in (({}, "no topic of this name"), ({"users": UUID(int=1)}, "has another id")):
        with pytest.raises(TargetUnsafe, match=says):
            check_topics(ClusterImage(topics=topics), logs)


@pytest.mark.parametrize("topic", ["a", "x" * 249])
def test_staged_names_are_those_of_a_partition_on_its_way_out(tmp_path: Path, topic: str) -> None:
    name = staged_name(topic, 12, "0123456789abcdef")
    found = log_directory(name)
    assert len(name) <= 255
    assert found is not None
    assert (found.state, found.log.partition) == (LogDirState.DELETED, 12)
    (tmp_path / name).mkdir()
    (tmp_path / f"{topic[:200]}-12.{'0' * 32}-delete").mkdir()
    assert leftovers(open_root(tmp_path), topic, 12) == [name]
    assert leftovers(open_root(tmp_path), topic, 2) == []


def test_nothing_is_written_by_a_preview(backed: Backed, root: Path) -> None:
    before = tree(root)
    foreseen = _foreseen(backed, root)
    assert tree(root) == before
    assert (foreseen.cluster_id, foreseen.own_cluster, foreseen.nodes) == ("another-cluster-------", False, (1,))
    assert logs_in(root / "users-0") == {f"{0:020d}.log": b""}


def test_a_log_start_that_the_broker_remembers(backed: Backed, root: Path) -> None:
    """It would hide the first records of what is restored, or delete all of it."""
    (root / "log-start-offset-checkpoint").write_text("0\n2\norders 0 0\norders 1 7\n")
    before = tree(root)
    with pytest.raises(TargetUnsafe, match="log start 7, and the restored log starts at 0") as refused:
        offline(backed.place, backed.backup, [root])
    assert "create it again" in refused.value.remedy
    assert tree(root) == before
    (root / "log-start-offset-checkpoint").write_text("0\n1\norders 1 0\n")
    assert offline(backed.place, backed.backup, [root]).good


def test_interrupted_between_two_moves(backed: Backed, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a file system that cannot exchange names: one of the two directories is there afterwards, whichever."""
    monkeypatch.setattr(staging, "_exchanged", lambda *_: False)
    real = Folder.rename

    def rename(folder: Folder, name: str, to: Folder, new_name: str) -> None:
        if new_name in {"orders-0", "orders-1", "users-0"} and interrupted.pop("next", False):
            raise KeyboardInterrupt
        real(folder, name, to, new_name)

    interrupted = {"next": True}
    monkeypatch.setattr(Folder, "rename", rename)
    with pytest.raises(KeyboardInterrupt):
        offline(backed.place, backed.backup, [root])
    assert {"orders-0", "orders-1", "users-0"} <= {p.name for p in root.iterdir()}
    assert offline(backed.place, backed.backup, [root]).good
