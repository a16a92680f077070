"""The command as a user types it: what it says when all is well, and one clear error when it is not."""

import os
import time

import pytest
from confluent_kafka import TopicPartition

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.embedded.ports import free_ports
from tests.e2e.test_bad_input import in_namespace, one_error
from tests.support.cli.filled_repository import Filled, tree
from tests.support.cli.processes import REAL
from tests.support.kafka.topic_matrix import Matrix
from tests.support.kafka.whole_backups import Archive
from tests.support.servers.secured_kafka import SecuredKafka

pytestmark = pytest.mark.xdist_group("kafka-secured")


def _write(topics: Matrix, topic: str, records: int, size: int = 100) -> None:
    producer = topics.producer(batch_num_messages=10)
    for i in range(records):
        producer.produce(topic, os.urandom(size), b"%d" % i, 0)
    producer.flush(60)


def _backup(kafka: EmbeddedKafka, *more: str) -> tuple[str, ...]:
    return "kafka", "backup", "--bootstrap-servers", kafka.bootstrap, "--source", "prod", *more


def _refused(repo: Filled, *arguments: str, code: int) -> str:
    before = tree(repo.root)
    done = repo.run(*arguments, code=code)
    assert tree(repo.root) == before
    return one_error(done.stderr)


def test_backup_and_gap(kafka: EmbeddedKafka, topics: Matrix, repo: Filled) -> None:
    topic = topics.create("typed")
    _write(topics, topic, 40)
    foreseen = repo.json(*_backup(kafka, "--topics", topic, "--dry-run"))
    first = repo.json(*_backup(kafka, "--topics", topic))
    assert (foreseen["id"], foreseen["new_offsets"], first["new_offsets"]) == (None, 40, 40)
    assert repo.listed() == [first["id"]]
    repo.run("verify", "--level", "data")
    for code, more, keep in ((21, (), 60), (2, ("--allow-gaps",), 100)):
        _write(topics, topic, 40)
        for future in topics.admin.delete_records([TopicPartition(topic, 0, keep)]).values():
            future.result(30)
        done = repo.json(*_backup(kafka, "--topics", topic, *more), code=code)
        assert f"[{keep - 20}, {keep})" in done["gaps"][0]
    repo.run("verify", "--level", "data")


def test_nobody_answers(repo: Filled) -> None:
    (port,) = free_ports(1)
    began = time.monotonic()
    said = _refused(repo, "kafka", "backup", "--bootstrap-servers", f"127.0.0.1:{port}", code=51)
    assert f"127.0.0.1:{port}" in said
    assert time.monotonic() - began < 60, "the promise is an answer within a minute"


def test_wrong_password_and_wrong_authority(secured: SecuredKafka, repo: Filled) -> None:
    wrong = secured.sasl_file("SASL_SSL", "PLAIN", password="not-the-one")
    said = _refused(repo, "kafka", "backup", "--command-config", str(wrong), code=52)
    assert "not-the-one" not in said
    said = _refused(repo, "kafka", "backup", "--follow", "--command-config", str(wrong), code=52)
    assert "not-the-one" not in said, "no later round would know a better password"
    foreign = secured.client_file("EXPIRED", ssl__truststore__location=str(secured.files / "stranger.pem"))
    assert "certificate" in _refused(repo, "kafka", "backup", "--command-config", str(foreign), code=40)


def test_a_topic_that_may_not_be_read_is_named(kafka: EmbeddedKafka, topics: Matrix, repo: Filled) -> None:
    """And it is copied as soon as it may be: what an earlier run was denied is no reason to be denied again."""
    for name in ("veiled", "veiled-not"):
        topics.create(name)
        _write(topics, name, 20)
    command, tool = ["--bootstrap-server", kafka.bootstrap], "org.apache.kafka.tools.AclCommand"
    rule = ["--deny-principal", "User:ANONYMOUS", "--operation", "Read", "--topic", "veiled"]
    operations = ["--operation", "Describe", "--operation", "DescribeConfigs"]
    seen = ["--allow-principal", "User:ANONYMOUS", *operations, "--topic", "veiled"]
    kafka.java_tool(tool, [*command, "--add", *rule])
    assert "veiled" in _refused(repo, *_backup(kafka, "--topics", "veiled"), code=52), "named, and not to be seen"
    kafka.java_tool(tool, [*command, "--add", *seen])
    said = one_error(repo.run(*_backup(kafka, "--topics", "veiled.*"), code=52).stderr)
    assert "veiled" in said
    assert [row for row in repo.json("list")["backups"] if row["state"] == "completed"] == []
    for each in (rule, seen):
        kafka.java_tool(tool, [*command, "--remove", "--force", *each])
    done = repo.json(*_backup(kafka, "--topics", "veiled.*"))
    assert done["partitions"] == 2
    repo.run("verify", "--level", "data")


def test_wrong_wishes(kafka: EmbeddedKafka, secured: SecuredKafka, topics: Matrix, repo: Filled) -> None:
    topic = topics.create("wished")
    _write(topics, topic, 10)
    taken = repo.json(*_backup(kafka, "--topics", topic))["id"]
    assert "no-such-topic" in _refused(repo, *_backup(kafka, "--topics", "no-such-topic.*"), code=40)
    assert "pattern" in _refused(repo, *_backup(kafka, "--topics", "("), code=40)
    for wanted in (taken, taken - 1):
        said = _refused(repo, *_backup(kafka, "--topics", topic, "--id", str(wanted)), code=40)
        assert str(wanted) in said
    for more in ((), ("--follow",)):
        assert "source prod" in _refused(repo, *_backup(secured, "--topics", "open", *more), code=40)


def test_a_full_disk(kafka: EmbeddedKafka, topics: Matrix, repo: Filled) -> None:
    topic = topics.create("too-large")
    _write(topics, topic, 10)
    first = repo.json(*_backup(kafka, "--topics", topic))["id"]
    _write(topics, topic, 2000, size=1000)
    mount = 'rm -rf "$1.kept"; cp -r "$1" "$1.kept"; mount -t tmpfs -o size=600k tmpfs "$1"; cp -r "$1.kept/." "$1"'
    done = in_namespace(repo, mount, *_backup(kafka, "--topics", topic, "--retry-for", "1s"))
    assert done.returncode == 20, done.stderr
    assert "space" in one_error(done.stderr)
    script = f"{mount}; {' '.join(REAL)} {' '.join(_backup(kafka, '--topics', topic))} && exit 99; true"
    done = in_namespace(repo, script, "verify", str(first), "--level", "data", "--json")
    assert done.returncode == 0, done.stderr
    archive = Archive(kafka.bootstrap, repo.place())
    archive.check(archive.back_up(topic).entry.id)
