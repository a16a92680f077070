"""One id over an application, a Kafka cluster and a ZooKeeper ensemble, by the commands that users type."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from logkeep.application.application_process import HOLD_AT
from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.model.cache import cache_dir
from tests.support.cli.filled_repository import document_of
from tests.support.cli.processes import logkeep
from tests.support.processes import wait_for
from tests.support.zookeeper.handmade_server import old_server

PROGRAM = """
from logkeep.application import Application

shop = Application("shop", partitions=2)

@shop.on("told")
def told(command, state, context):
    state[command.key] = command.value
    context.external(command.key, command.value)
    context.reply(command.value)

if __name__ == "__main__":
    shop.main()
"""
CONFIG = """
repository: {{url: "file://{home}/repo"}}
sources:
  shop: {{data: {home}/data}}
  kafka-prod: {{bootstrap_servers: "{brokers}"}}
  zk-prod: {{data_dir: {home}/zookeeper}}
"""
MEMBERS = ("--members", "kafka-prod,shop,zk-prod")
LATE_MARKER = 99_991_231_235_959
"""A checkpoint without a copy is known to the application alone."""
LAST_ZXID, SEEN_ZXID = 40, 33


class Home:
    """A machine with the three systems. Its ZooKeeper is only files, so that every backup of it ends with 2."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "shop.py").write_text(PROGRAM)
        old_server(path / "zookeeper")

    def run(self, *arguments: str, code: int = 0) -> "subprocess.CompletedProcess[str]":
        done = logkeep(*arguments, home=self.path)
        assert done.returncode == code, f"{arguments}\n{done.stdout}\n{done.stderr}"
        return done

    def json(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        return document_of(self.run(*arguments, "--json", code=code).stdout)

    def program(self, *arguments: str) -> list[str]:
        return [sys.executable, str(self.path / "shop.py"), *arguments, "--data", str(self.path / "data")]

    def tell(self, name: str, position: int) -> None:
        sent = subprocess.run(self.program("send", "told", name, str(position)), capture_output=True, check=True)
        assert json.loads(sent.stdout) == position

    @contextmanager
    def application(self, **variables: str) -> Iterator[None]:
        command = [*self.program("run"), "--repository", str(self.path / "repo")]
        quiet = subprocess.DEVNULL
        with subprocess.Popen(command, stdout=quiet, stderr=quiet, env=os.environ | variables) as process:
            try:
                wait_for((self.path / "data/control.sock").exists, "the control socket")
                yield
            finally:
                process.terminate()


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(tmp_path_factory.mktemp("broker"), cache_dir(os.environ, Path.home())) as running:
        yield running


def sell(kafka: EmbeddedKafka, orders: int) -> None:
    address = {"bootstrap.servers": kafka.bootstrap}
    admin = AdminClient(address)
    admin.create_topics([NewTopic("orders", 1)])["orders"].result(30)
    producer = Producer(address)
    for number in range(orders):
        producer.produce("orders", f"order {number}")
    assert producer.flush(30) == 0


def test_v13_three_sources_under_one_id(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    home = Home(tmp_path)
    sell(kafka, 10)
    (tmp_path / "logkeep.yaml").write_text(CONFIG.format(home=tmp_path, brokers=kafka.bootstrap))
    home.run("init", "--yes")
    with home.application():
        refused = home.run("backup-set", "take", *MEMBERS, code=40)
        assert "its first backup alone" in refused.stderr
        home.run("app", "backup", "shop", "--data", str(tmp_path / "data"), "--id", "1")
        home.run("kafka", "backup", "--source", "kafka-prod", "--id", "2")
        home.run("zookeeper", "backup", "--source", "zk-prod", "--id", "3", code=2)
        home.tell("zk-prod", SEEN_ZXID)
        home.tell("kafka-prod/orders/0", 7)
        for used in ("2", "3"):
            home.run("backup-set", "take", *MEMBERS, "--id", used, code=40)
        planned = home.json("backup-set", "take", *MEMBERS, "--id", "100", "--dry-run")
        assert [row["source"] for row in planned["members"]] == ["shop", "kafka-prod", "zk-prod"]
        assert {row["id"] for row in home.json("list")["backups"]} == {1, 2, 3}

        taken = home.json("backup-set", "take", *MEMBERS, "--id", "100", code=2)
        home.run("backup-set", "take", *MEMBERS, "--id", "100", code=40)
        home.run("app", "checkpoint", "shop", "--data", str(tmp_path / "data"), "--id", str(LATE_MARKER))
        home.run("backup-set", "take", *MEMBERS, "--id", str(LATE_MARKER), code=40)
        assert home.json("backup-set", "take", *MEMBERS, "--dry-run")["id"] == LATE_MARKER + 1
    assert taken["state"] == "completed"
    assert [row["source"] for row in taken["members"]] == ["shop", "kafka-prod", "zk-prod"]
    assert taken["members"][0]["started"] < taken["members"][1]["started"] < taken["members"][2]["started"]
    assert {tuple(row["group"]) for row in home.json("list")["backups"] if row["id"] == 100} == {
        ("shop", "kafka-prod", "zk-prod")
    }

    certificate = home.json("verify", "100", "--level", "cut", "--source", "shop")["certificate"]
    (v13,) = (rule for rule in certificate["rules"] if rule["rule"] == "V13")
    unordered = LAST_ZXID - SEEN_ZXID + (9 - 7)
    assert (v13["outcome"], v13["what"]) == ("held", f"2 external positions, {unordered} unordered")
    assert [each["source"] for each in certificate["captured"]] == ["shop", "kafka-prod", "zk-prod"]
    assert certificate["declared"][1].startswith("kafka-prod, zk-prod: what the application reads there")

    found = home.json("backup-set", "status")
    assert (found["id"], found["state"], found["members"][0]["certified"]) == (100, "completed", True)
    shown = home.run("backup-set", "status", "100").stdout.splitlines()
    commands = [shlex.split(line) for line in shown if line.startswith("  logkeep ")]
    assert [command[1:] for command in commands] == [
        ["kafka", "restore", "100", "--source", "kafka-prod"],
        ["zookeeper", "restore", "100", "--source", "zk-prod"],
        ["app", "restore", "100", "--source", "shop"],
    ]
    for command in commands:  # the systems still have what was archived
        home.run(*command[1:], "--dry-run", code=0 if "zookeeper" in command else 31)


def test_sets_that_fail_and_cuts_that_do_not_belong_together(tmp_path: Path) -> None:
    home = Home(tmp_path)
    (tmp_path / "logkeep.yaml").write_text(CONFIG.format(home=tmp_path, brokers="127.0.0.1:1"))
    home.run("init", "--yes")
    here, members = ("--data", str(tmp_path / "data")), ("--members", "zk-prod,shop")
    with home.application():
        home.run("zookeeper", "backup", "--source", "zk-prod", "--id", "50", code=2)
        home.tell("zk-prod", LAST_ZXID + 1)
        home.run("app", "backup", "shop", *here, "--id", "50")
    shown = home.run("verify", "50", "--level", "cut", "--source", "shop", code=10).stdout
    assert f"zk-prod ends at {LAST_ZXID}, and the application has seen {LAST_ZXID + 1}" in shown
    assert "captured 1: zk-prod (zookeeper), begun at" in shown
    assert home.json("backup-set", "status")["members"][1]["certificate"].startswith("the cut is not consistent: V13")

    home.run("backup-set", "take", *members, "--id", "60", code=51)  # the application does not run
    measured = tmp_path / "metrics.prom"
    with home.application(**{HOLD_AT: "1/appended create"}):
        taken = home.json(
            "backup-set", "take", *members, "--id", "60", "--timeout", "15s", "--metrics-file", str(measured), code=20
        )
    states = {row["source"]: (row["state"], row["reason"]) for row in taken["members"]}
    assert states["zk-prod"] == ("doesNotExist", None)
    assert states["shop"][0] == "failed"
    assert "partition 1" in states["shop"][1]
    assert (taken["state"], taken["restore"]) == ("failed", [])
    assert 'logkeep_backup_success{source="shop"} 0' in measured.read_text()
    assert "shop: partition 1" in home.run("backup-set", "status", "60", code=20).stdout
