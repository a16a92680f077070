"""Backups over HTTP of an application whose log is on a broker, by the command that users start."""

import http.client
import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from logkeep.embedded.kafka import EmbeddedKafka
from tests.support.cli.processes import REAL, clean_environment, logkeep
from tests.support.kafka.application_processes import ApplicationProcesses
from tests.support.processes import wait_for
from tests.support.running_application import new_repository

pytestmark = pytest.mark.xdist_group("kafka-restore")
USED = "not larger than the latest checkpoint of the application, 9"


class _Served:
    def __init__(self, home: Path, port: int) -> None:
        self._home, self._port = home, port

    def take(self, number: int) -> tuple[int, str]:
        token = (self._home / "token").read_text().strip()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        return self._answer("POST", "", json.dumps({"backupId": number}), headers)

    def state(self, number: int) -> Any:
        return json.loads(self._answer("GET", f"/{number}")[1])["state"]

    def _answer(self, method: str, rest: str, *body: Any) -> tuple[int, str]:
        with closing(http.client.HTTPConnection("127.0.0.1", self._port, timeout=120)) as connection:
            connection.request(method, f"/v1/applications/httpbank/backups{rest}", *body)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()


@contextmanager
def _serving(home: Path, *where: str) -> Iterator[_Served]:
    words = ["app", "serve", "httpbank", *where, "--listen", "127.0.0.1:0", "--token-file", str(home / "token")]
    with (home / "serve.err").open("wb") as said:
        process = subprocess.Popen([*REAL, *words], stderr=said, cwd=home, env=clean_environment(home))
    try:
        wait_for(lambda: process.poll() is not None or b"serving" in (home / "serve.err").read_bytes(), "the server")
        printed = re.search(r"http://127\.0\.0\.1:([1-9][0-9]*); ", (home / "serve.err").read_text())
        assert printed is not None, (home / "serve.err").read_text()
        yield _Served(home, int(printed[1]))
    finally:
        process.terminate()
        process.wait(60)


def test_backups_are_taken_over_http_and_no_id_is_used_twice(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    bank = ApplicationProcesses(tmp_path, kafka.bootstrap, "tests.support.running_application:bank", "httpbank")
    new_repository(bank.repository)
    config = tmp_path / "client.properties"
    config.write_text("client.id=served\n")
    where = ("--bootstrap-servers", kafka.bootstrap, "--client-config", str(config), "--repo", str(bank.repository))
    with bank.running("data"):
        wait_for(lambda: b"runs with" in (tmp_path / "data.out").read_bytes(), "the application")
        with _serving(tmp_path, *where) as served:
            assert served.take(7)[0] == 202
            wait_for(lambda: served.state(7) == "completed", "the copies")
            marked = logkeep("app", "checkpoint", "httpbank", *where, "--id", "9", home=tmp_path)
            assert marked.returncode == 0, marked.stderr
            for number in (8, 9):
                status, problem = served.take(number)
                assert (status, USED in problem) == (409, True), problem
            again = logkeep("app", "checkpoint", "httpbank", *where, "--id", "9", home=tmp_path)
            assert (again.returncode, USED in again.stderr) == (40, True)
            assert served.take(10)[0] == 202
        _check_set(kafka, bank)


def _check_set(kafka: EmbeddedKafka, bank: ApplicationProcesses) -> None:
    """The printed restore of an application on Kafka names its brokers: its backup knows them."""
    repo, brokers = ("--repo", str(bank.repository)), ("--bootstrap-servers", kafka.bootstrap)
    topics = ("--topics", "httpbank.history", "--source", "cluster", "--id", "11")
    for words in (("app", "backup", "httpbank", "--id", "11"), ("kafka", "backup", *topics)):
        done = logkeep(*words, *brokers, *repo, home=bank.home)
        assert done.returncode == 0, done.stderr
    shown = json.loads(logkeep("backup-set", "status", "11", *repo, "--json", home=bank.home).stdout)
    (printed,) = (shlex.split(line) for line in shown["restore"] if " app " in line)
    assert printed[1:] == ["app", "restore", "11", *brokers, *("-r", str(bank.repository)), "--source", "httpbank"]
