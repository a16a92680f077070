"""The demo as a user starts it: it tells its story, and leaves nothing behind, however it ends."""

import os
import re
import signal
import subprocess
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from logkeep.cli.demo.stage import Stage
from logkeep.cli.demo.story import CHAPTERS
from logkeep.engine.spark.jvm.processes import descendants
from logkeep.model.cache import cache_dir
from logkeep.zookeeper.server.four_letter import four_letter, parse_srvr
from tests.support.cli.in_process import Here
from tests.support.core_limits import NONE, watched_core_limits
from tests.support.processes import files_below, program, wait_for

pytestmark = pytest.mark.xdist_group("demo")
BEGINNING = ("probe the store", "create a repository")
OF_KAFKA = (
    "start a real Kafka",
    "open a shop",
    "let two groups read",
    "back up the cluster",
    "sell more, and back up again",
    "list the backups",
    "read archived records",
    "the accident: a user deletes all topics",
    "plan a restore with --dry-run",
    "restore: every record at its own offset",
    "let the group continue",
    "show the receipt",
    "stop the broker",
)
OF_ZOOKEEPER = (
    "start a real ZooKeeper",
    "keep the shop's settings in it",
    "back up the running server",
    "the accident: a user changes a price",
    "back up again, and find out who deleted them",
    "restore the settings as they were",
    "drill: restore everything",
    "stop the server",
)
OF_SETS = (
    "start a Kafka broker and a ZooKeeper server for a till",
    "start an application",
    "back up each of them alone",
    "back up all of them under one id",
    "certify the cut",
    "show the set",
    "stop all of them",
)


def started(tmp_path: Path, *flags: str, true_start: bool = False) -> "AbstractContextManager[subprocess.Popen[str]]":
    """Below an empty home directory; only the jars come from the cache that all tests share."""
    cache = str(cache_dir(os.environ, Path.home()))
    return program(["logkeep.cli", "demo", *flags], tmp_path, true_start=true_start, LOGKEEP_CACHE_DIR=cache)


@dataclass(frozen=True)
class Told:
    """One demo that was run to its end; several tests look at it."""

    root: Path
    directory: Path
    out: str
    story: str
    core_limits: dict[str, set[tuple[str, str]]]
    """Of its servers, by kind."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Told:
    root = tmp_path_factory.mktemp("whole")
    directory = root / "demo"
    with (
        watched_core_limits(os.getpid()) as limits,
        started(root, "--directory", str(directory), true_start=True) as running,
    ):
        out, err = running.communicate()
    assert running.returncode == 0, err
    return Told(root, directory, out, err, limits)


def told(story: str, pattern: str) -> list[str]:
    return re.findall(pattern, story)


def mentioning(directory: Path) -> list[int]:
    """Processes, whoever their parent is now, that were started with something in this directory."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(directory).encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue  # gone while we looked
    return found


def test_it_tells_every_step_and_leaves_nothing(whole: Told) -> None:
    for step in (*BEGINNING, *OF_KAFKA, *OF_ZOOKEEPER, *OF_SETS):
        (line,) = (line for line in whole.out.splitlines() if line.startswith(step))
        assert re.search(r"\d+(\.\d)? s$", line), line
        assert f"== {step}" in whole.story
    assert f"$ export LOGKEEP_REPO=file://{whole.directory}/repository" in whole.story
    assert f"removed from {whole.directory}" in whole.out
    assert not whole.directory.exists()
    assert mentioning(whole.directory) == []
    assert [files_below(whole.root / name) for name in ("home", "work", "tmp")] == [[], [], []]


def test_no_server_can_leave_a_core_dump(whole: Told) -> None:
    """Those that stay, and the one that a drill starts and stops."""
    assert whole.core_limits == {"Kafka": {NONE}, "ZooKeeper": {NONE}}


def test_of_kafka_all_comes_back_and_the_group_goes_on(whole: Told) -> None:
    assert told(whole.story, r"of shop: copied ([\d,]+) offsets")[1:] == ["1,000"]
    assert told(whole.story, r"(OK  backup \d+ of shop: good \(level data\))")
    assert told(whole.story, r"(OK  restore \d+ of backup \d+: proven)")
    assert told(whole.story, r"offsets (preserved|translated)") == ["preserved"]
    assert told(whole.story, r"\n  (?:audit|billing) .* yes +(\d+)(?=\n)") == ["0"] * 4
    assert "billing had read 1,200 orders before the accident, and has read 2,800 now" in whole.story
    assert "none twice, none left out" in whole.story


def test_of_zookeeper_the_culprit_is_named_and_what_was_lost_comes_back(whole: Told) -> None:
    assert told(whole.story, r"(restore-subtree latest /shop/settings --source settings --to-zxid 0x[0-9a-f]+)")
    culprits = told(whole.story, r"(0x[0-9a-f]+) +delete .* /shop/settings")
    assert (len(culprits), len(set(culprits))) == (4, 1), "one session deleted three settings and the node above them"
    assert told(whole.story, r"OK  /shop/settings: done, (\d+) changes") == ["4"]
    assert told(whole.story, r"read again: (\d+) nodes, 0 differ") == ["4"]
    assert "each with its data and its ACL as before" in whole.story
    assert told(whole.story, r"OK  drill of backup \d+: (proven)")


def test_of_sets_one_id_is_certified_over_three_systems(whole: Told) -> None:
    assert told(whole.story, r"\n  (backup set \d+: completed)\n") != []
    assert told(whole.story, r"V13 held +external positions are covered: (2 external positions), \d+ unordered")
    assert told(whole.story, r"captured \d: (\S+)") == ["till", "till-kafka", "till-zk"]
    assert told(whole.story, r"\n    logkeep (\S+) restore \d+ --source till") == ["kafka", "zookeeper", "app"] * 2


def test_json_is_one_document_and_keep_leaves_the_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With chapters of the test's own: what they tell is above."""
    heard: list[str] = []
    chapters = {kind: partial(_say, heard, kind) for kind in CHAPTERS}
    monkeypatch.setattr("logkeep.cli.verbs.demo.CHAPTERS", chapters)
    directory = tmp_path / "demo"
    directory.mkdir()
    shown = Here(tmp_path).json("demo", "--keep", "--directory", str(directory))
    assert (shown["kept"], heard) == (True, ["kafka", "zookeeper", "sets"])
    assert [step["title"] for step in shown["steps"]] == [*BEGINNING, "kafka", "zookeeper", "sets"]
    assert all(step["seconds"] >= 0 for step in shown["steps"])
    assert (directory / "repository" / "logkeep.json").exists()
    Here(tmp_path).json("demo", "--only", "zookeeper", "--directory", str(tmp_path / "other"))
    assert heard[3:] == ["zookeeper"]
    assert not (tmp_path / "other").exists()


def _say(heard: list[str], kind: str, stage: Stage) -> None:
    with stage.step(kind):
        heard.append(kind)


def test_a_directory_with_something_in_it_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter").write_text("dear")
    with started(tmp_path, "--directory", str(tmp_path / "mine")) as running:
        out, err = running.communicate()
    assert (running.returncode, out) == (40, "")
    assert "empty or new directory" in err
    assert files_below(tmp_path / "mine") == ["letter"]


@pytest.mark.parametrize(
    ("kind", "tool"),
    [("kafka", "TopicCommand"), pytest.param("zookeeper", "ZooKeeperMain", marks=pytest.mark.soak)],
)
def test_ctrl_c_in_the_middle_leaves_nothing_running(tmp_path: Path, kind: str, tool: str) -> None:
    directory = tmp_path / "demo"
    with started(tmp_path, "--only", kind, "--directory", str(directory)) as running:
        wait_for(lambda: any(tool in line for line in command_lines(running.pid)), "the server to be used")
        running.send_signal(signal.SIGINT)
        out, err = running.communicate()
        left = mentioning(directory)
    assert left == []
    assert running.returncode == 130, err
    assert out == ""
    assert "error: " in err
    assert "Traceback" not in err
    assert not directory.exists()


def test_a_server_that_stays_can_be_used_and_its_end_is_reported(tmp_path: Path) -> None:
    """The README's quick start uses the broker that stays, and ends it with a signal."""
    directory = tmp_path / "it's a demo"
    with started(tmp_path, "--stay", "--only", "zookeeper", "--directory", str(directory)) as running:
        wait_for(lambda: (directory / "env").exists() or running.poll() is not None, "the server to be filled")
        typed = f'. "{directory}/env"; echo "$LOGKEEP_REPO" $(command -v zkCli.sh); echo "$ZK"'
        shell = subprocess.run(["sh", "-c", typed], capture_output=True, text=True, check=True)
        *named, address = shell.stdout.splitlines()
        served = parse_srvr(four_letter(address, "srvr", 10))
        (server,) = (each.pid for each in descendants(running.pid))
        os.kill(server, signal.SIGKILL)
        out, err = running.communicate()
    assert named == [f"file://{directory}/repository {directory}/bin/zkCli.sh"]
    assert served is not None
    assert (running.returncode, out) == (40, "")
    assert "error: the server ended with exit code -9" in err
    assert not directory.exists()


def command_lines(pid: int) -> list[str]:
    """Of all processes below one."""
    found = []
    for process in descendants(pid):
        try:
            found.append(Path(f"/proc/{process.pid}/cmdline").read_text().replace("\0", " "))
        except OSError:
            continue  # gone while we looked
    return found
