"""An application is backed up while it runs, rolled back, and backed up again, by the commands that users type."""

import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from logkeep.application.application_process import HOLD_AT
from logkeep.application.control import SendRequest
from logkeep.application.control_client import ControlClient
from logkeep.application.data_directory import open_directory
from logkeep.errors import LogkeepError
from logkeep.model.time import utc_now
from tests.support.cli.processes import REAL, clean_environment, logkeep
from tests.support.processes import wait_for

ANSWERED_WITHIN = "15s"
"""Until then the partitions that are not held must have answered, on a busy machine too."""
SHOP = """
from logkeep.application import Application

shop = Application("shop", partitions=4)

@shop.on("put")
def put(command, state, context):
    state[command.key] = command.value
    context.send("copy", key="copy of " + command.key, value=command.value)
    context.reply(command.value)

@shop.on("get")
def get(command, state, context):
    context.reply(state[command.key])

@shop.on("copy")
def copy(command, state, context):
    state[command.key] = command.value

if __name__ == "__main__":
    shop.main()
"""


class Shop:
    def __init__(self, home: Path) -> None:
        self.home, self.data, self.repo = home, home / "data", home / "repo"
        (home / "shop.py").write_text(SHOP)

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return logkeep(*arguments, "--repo", str(self.repo), "--json", home=self.home)

    def app(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        done = self.run("app", *arguments)
        assert done.returncode == code, done.stderr
        return json.loads(done.stdout) if done.stdout else {"stderr": done.stderr}

    def backup(self, number: object, *more: str, code: int = 0) -> dict[str, Any]:
        return self.app("backup", "shop", "--data", str(self.data), "--id", str(number), *more, code=code)

    def drill(self, number: int, proven: int) -> None:
        done = self.run("drill", str(number))
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout)
        assert (report["verdict"], report["findings"]) == ("proven", [])
        assert report["application"]["partitions"] == report["application"]["partitions_proven"] == proven
        assert self.run("drill", str(number), "--embedded").returncode == 40

    def program(self, *arguments: str) -> str:
        command = [sys.executable, str(self.home / "shop.py"), *arguments, "--data", str(self.data)]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.strip()

    def put(self, key: str, value: int) -> None:
        assert self.program("send", "put", key, str(value)) == str(value)

    @contextmanager
    def running(self, *more: str, **variables: str) -> Iterator["subprocess.Popen[bytes]"]:
        command = [sys.executable, str(self.home / "shop.py"), "run", "--data", str(self.data)]
        where = ["--repository", str(self.repo), "--source", "shop", *more]
        quiet, environ = subprocess.DEVNULL, os.environ | variables
        with subprocess.Popen([*command, *where], stdout=quiet, stderr=quiet, env=environ, umask=0o022) as process:
            try:
                wait_for((self.data / "control.sock").exists, "the control socket")
                yield process
            finally:
                process.terminate()
                try:
                    process.wait(60)
                except subprocess.TimeoutExpired:
                    process.kill()
                    raise


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    made = Shop(tmp_path)
    assert made.run("init", "--yes").returncode == 0
    return made


def test_r61_an_application_is_rolled_back_and_backed_up_again(shop: Shop) -> None:
    with shop.running():
        shop.put("before", 1)
        assert shop.backup(7)["state"] == "completed"
        shop.put("between", 2)
        assert not [one for one in shop.data.rglob("*") if one.stat().st_mode & 0o077]
        shop.app("checkpoint", "shop", "--data", str(shop.data), "--id", "8")
        shop.put("after", 3)
        assert shop.backup(9)["state"] == "completed"
        for used in (7, 0, "text"):
            shop.backup(used, code=40)
        shop.app("restore", "8", "--data", str(shop.data), "--yes", code=31)
    assert shop.app("status", "9")["state"] == "completed"
    assert (shop.app("status")["id"], shop.app("status", "latest")["state"]) == (9, "completed")
    assert shop.app("status", "6")["state"] == "doesNotExist"
    shop.app("restore", "8", "--data", str(shop.data), "--yes", code=31)
    planned = shop.app("restore", "8", "--data", str(shop.data), "--replace", "--dry-run")
    measured = shop.home / "metrics.prom"
    done = shop.app("restore", "8", "--data", str(shop.data), "--replace", "--yes", "--metrics-file", str(measured))
    assert 'logkeep_restore_success{source="shop"} 1' in measured.read_text()
    assert (planned["history"], done["history"]) == (1, 1)
    assert planned["partitions"] == done["partitions"]
    assert sum(one["dropped"] for one in planned["partitions"]) >= 4  # the record after 8, its copy, and what they send
    assert [(one["sent_again"], one["proven"]) for one in done["partitions"]] == [(None, False)] * 4
    assert Path(done["before"]).is_dir()
    with shop.running():
        assert "1" in shop.program("state", "before")
        assert "2" in shop.program("state", "between")
        shop.backup(9, code=40)
        shop.put("again", 4)
        assert shop.backup(10)["state"] == "completed"
    assert shop.run("verify", "10", "--level", "data").returncode == 0
    shop.drill(10, proven=4)
    twice = [shop.app("restore", "10", "--data", str(shop.home / name), "--yes") for name in ("elsewhere", "beside")]
    assert [one["history"] for one in twice] == [2, 3]
    assert all(one["proven"] and one["dropped"] == 0 for restored in twice for one in restored["partitions"])
    again = shop.app("restore", "latest", "--data", str(shop.data), "--replace", "--dry-run")
    assert again["checkpoint"] == 10
    assert [one["sent_again"] for one in again["partitions"]] == [0] * 4
    assert list((shop.repo / "holds").rglob("*.json")) == []
    kept = json.loads(shop.run("receipts", "list").stdout)["restores"]
    assert [(one["state"], one["drill"], one["backup"]) for one in kept] == [
        ("unproven", False, 9), ("proven", True, 10), ("proven", False, 10), ("proven", False, 10),
    ]  # fmt: skip
    assert [one["id"] for one in kept if not one["drill"]] == [done["restore"], *(one["restore"] for one in twice)]
    shown = json.loads(shop.run("receipts", "show", str(done["restore"])).stdout)
    assert (shown["kind"], shown["facts"]["checkpoint"], shown["facts"]["history"]) == ("application", "8", "1")
    shop.app("restore", "9", "--data", str(shop.home / "elsewhere"), "--yes", code=31)


def test_an_application_that_does_not_run_uses_no_id(shop: Shop) -> None:
    shop.data.mkdir()
    shop.backup(7, code=51)
    with shop.running():
        assert shop.backup(7)["state"] == "completed"


def test_a_partition_that_never_answers_is_named(shop: Shop) -> None:
    with shop.running(**{HOLD_AT: "2/appended create"}):
        measured = shop.home / "metrics.prom"
        shop.put("waiting", 1)
        shown = shop.backup(7, "--timeout", ANSWERED_WITHIN, "--metrics-file", str(measured), code=20)["stderr"]
        assert 'logkeep_backup_success{source="shop"} 0' in measured.read_text()
        assert re.search(r'logkeep_backup_unarchived_bytes{source="shop"} [1-9]', measured.read_text())
        # The coordinator records it, or another partition that waits for the end.
        assert "partition 2: it did not answer before the deadline" in shown or "partition 2 has no copy at" in shown
        failed = shop.app("status", "7", code=20)
        assert (failed["state"], failed["reason"].startswith("partition 2")) == ("failed", True)
        words = ["app", "backup", "shop", "--data", str(shop.data), "--id", "8", "--timeout", "600s"]
        command = [*REAL, *words, "--repo", str(shop.repo)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=clean_environment(shop.home)) as run:
            wait_for(lambda: '"state": "ongoing"' in shop.run("app", "status", "8").stdout, "the request")
            run.terminate()
            assert "`logkeep app status` shows how it ends" in run.communicate()[1]
        assert run.returncode == 128 + signal.SIGTERM
    with shop.running():
        assert shop.backup(9, "--supersede", "--metrics-file", str(measured))["state"] == "completed"
        values = dict(line.split() for line in measured.read_text().splitlines() if not line.startswith("#"))
        assert float(values['logkeep_backup_success{source="shop"}']) == 1
        assert float(values['logkeep_backup_size_bytes{source="shop"}']) > 0
        assert 'logkeep_backup_pause_seconds{source="shop"}' in values
    other = shop.home / "other"
    other.mkdir()
    open_directory(other, "shop", 2, utc_now())
    refused = shop.app("restore", "9", "--data", str(other), "--replace", "--yes", code=31)
    assert "the backup has 4 partitions, the target has 2" in refused["stderr"]


def test_a_backup_with_warnings_says_them(shop: Shop) -> None:
    """The directory is put back to before the last backup."""
    with shop.running():
        shop.put("first", 1)
        assert shop.backup(1)["state"] == "completed"
    shutil.copytree(shop.data, shop.home / "earlier")
    with shop.running():
        assert shop.backup(2)["state"] == "completed"
    shutil.rmtree(shop.data)
    (shop.home / "earlier").rename(shop.data)
    with shop.running():
        found = shop.backup(3, code=21)
        assert [each["code"] for each in found["findings"]] == ["log-branched"]
    shown = logkeep("app", "status", "3", "--repo", str(shop.repo), home=shop.home)
    assert (shown.returncode, "or runs a copy" in shown.stdout) == (21, True)


def test_r9_a_backup_on_top_of_an_archived_snapshot_starts_again(shop: Shop) -> None:
    """The log of the second backup begins behind the snapshot of the first one; only results lie in between."""
    with shop.running("--snapshot-every", "1KiB"):
        for number in range(12):
            shop.put(f"key{number}", number)
        wait_for(lambda: any(shop.data.glob("p*/snapshots/*.sqlite")), "a snapshot")
        assert shop.backup(1)["state"] == "completed"
        shop.put("later", 1)
        assert shop.backup(2)["state"] == "completed"
    shop.data = shop.home / "restored"
    shop.app("restore", "2", "--data", str(shop.data), "--yes")
    with shop.running():
        assert [shop.program("state", key) for key in ("key3", "later")] == ["3", "1"]


def test_a_busy_application_ends_at_once_and_keeps_all_it_answered(shop: Shop) -> None:
    """SIGTERM while clients send and a backup is copied: code 0, and every reply was durable.

    The system may give a signal to any thread, so this one goes to another thread than the main one.
    """
    answered: list[int] = []

    def send(client: int) -> None:
        try:
            for number in range(client, 1_000_000, 3):
                port.send(SendRequest("put", f"k{number}", number, None, 30))
                answered.append(number)
        except (LogkeepError, OSError):
            return  # it has ended

    with shop.running() as process:
        port = ControlClient(shop.data)
        clients = [threading.Thread(target=send, args=(client,)) for client in range(3)]
        for each in clients:
            each.start()
        wait_for(lambda: len(answered) > 100, "a hundred replies")
        shop.backup(7, "--no-wait")
        threads = sorted(int(one.name) for one in Path(f"/proc/{process.pid}/task").iterdir())
        assert ctypes.CDLL(None).tgkill(process.pid, threads[1], signal.SIGTERM) == 0
        assert process.wait(120) == 0
        for each in clients:
            each.join()
    assert answered
    with shop.running():
        port = ControlClient(shop.data)
        assert {port.send(SendRequest("get", f"k{number}", None, None, 30)) for number in answered} == set(answered)
        assert json.loads(shop.run("app", "status", "7").stdout)["state"] in ("completed", "failed", "ongoing")
