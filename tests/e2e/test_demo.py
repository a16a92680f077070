"""The demo as a user starts it: it tells its story, and leaves nothing behind, however it ends."""

import json
import os
import re
import signal
import subprocess
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from logkeep.spark.cache import cache_dir
from logkeep.spark.processes import descendants
from tests.e2e.filled import document
from tests.integration.processes import files_below, program, wait_for

pytestmark = pytest.mark.xdist_group("kafka")
STEPS = (
    "ask what the store can do",
    "create a repository",
    "start a real Kafka",
    "open a shop",
    "let two groups read",
    "back the cluster up",
    "sell more, and back up again",
    "look at the backups",
    "the accident",
    "ask what a restore would do",
    "restore: every record at its own offset",
    "let the group read on",
    "look at the receipt",
    "stop the broker",
)


def started(tmp_path: Path, *flags: str) -> "AbstractContextManager[subprocess.Popen[str]]":
    """Below an empty home directory; only the jars come from the cache that all tests share."""
    cache = str(cache_dir(os.environ, Path.home()))
    return program(["logkeep.cli", "demo", *flags], tmp_path, LOGKEEP_CACHE_DIR=cache)


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


def test_it_tells_every_step_and_leaves_nothing(tmp_path: Path) -> None:
    directory = tmp_path / "demo"
    with started(tmp_path, "--directory", str(directory)) as running:
        out, err = running.communicate()
    assert running.returncode == 0, err
    for step in STEPS:
        (line,) = (line for line in out.splitlines() if line.startswith(step))
        assert re.search(r"\d+(\.\d)? s$", line), line
        assert f"== {step}" in err
    assert f"$ export LOGKEEP_REPO=file://{directory}/repository" in err
    assert told(err, r"of shop: copied ([\d,]+) offsets")[1:] == ["1,000"]
    assert told(err, r"(OK  backup \d+ of shop: good \(level data\))")
    assert told(err, r"(OK  restore \d+ of backup \d+: proven)")
    assert told(err, r"offsets (preserved|translated)") == ["preserved"]
    assert told(err, r"\n  (?:audit|billing) .* yes +(\d+)(?=\n)") == ["0"] * 4
    assert "billing had read 1,200 orders before the accident, and reads 2,800 now" in err
    assert "none twice, none left out" in err
    assert f"removed from {directory}" in out
    assert not directory.exists()
    assert mentioning(directory) == []
    assert [files_below(tmp_path / name) for name in ("home", "work", "tmp")] == [[], [], []]


def archived_billing(repository: Path) -> list[int]:
    """How far the group `billing` was in each backup, over all partitions."""
    found = []
    for path in sorted(repository.glob("sources/shop/backups/*/attachments/cluster.*.json")):
        groups = {g["name"]: g["commits"] for g in json.loads(path.read_text().splitlines()[0])["groups"]}
        assert groups.keys() == {"audit", "billing"}
        found.append(sum(c["offset"] for c in groups["billing"]))
    return found


def test_json_is_one_document_and_keep_leaves_the_directory(tmp_path: Path) -> None:
    directory = tmp_path / "demo"
    directory.mkdir()
    with started(tmp_path, "--json", "--keep", "--directory", str(directory)) as running:
        out, err = running.communicate()
    assert running.returncode == 0, err
    shown = document(subprocess.CompletedProcess([], 0, out, err))
    assert shown["kept"]
    assert len(shown["steps"]) >= len(STEPS)
    assert all(step["seconds"] > 0 for step in shown["steps"])
    assert archived_billing(directory / "repository") == [1_200] * 2
    assert mentioning(directory) == []


def test_a_directory_with_something_in_it_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter").write_text("dear")
    with started(tmp_path, "--directory", str(tmp_path / "mine")) as running:
        out, err = running.communicate()
    assert (running.returncode, out) == (40, "")
    assert "empty or new directory" in err
    assert files_below(tmp_path / "mine") == ["letter"]


def test_ctrl_c_in_the_middle_leaves_nothing_running(tmp_path: Path) -> None:
    directory = tmp_path / "demo"
    with started(tmp_path, "--directory", str(directory)) as running:
        wait_for(lambda: any("TopicCommand" in line for line in command_lines(running.pid)), "the broker to be used")
        running.send_signal(signal.SIGINT)
        out, err = running.communicate()
        left = mentioning(directory)
    assert left == []
    assert running.returncode == 130, err
    assert out == ""
    assert "error: " in err
    assert "Traceback" not in err
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
