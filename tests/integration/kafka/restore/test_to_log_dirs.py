"""The command that writes files: what its dry run prints is done, step by step, and a broker serves the result."""

import os
import shlex
import uuid
from pathlib import Path

import pytest

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.model.cache import cache_dir
from tests.e2e.test_bad_input import one_error
from tests.support.cli.filled_repository import Filled
from tests.support.kafka.consumer_view import seen, watermarks
from tests.support.kafka.group_topic import commit
from tests.support.kafka.topic_matrix import BROKER, Matrix

pytestmark = pytest.mark.xdist_group("kafka-restore")
_TOOLS = {"kafka-topics.sh": "org.apache.kafka.tools.TopicCommand", "kafka-configs.sh": "kafka.admin.ConfigCommand"}


def _lines(procedure: str, program: str) -> list[str]:
    found = [line.strip() for line in procedure.splitlines() if line.strip().startswith(program)]
    assert found
    return found


def _as_told(target: EmbeddedKafka, procedure: str, program: str) -> None:
    """Type the printed commands of one program."""
    for line in _lines(procedure, program):
        words = [word.replace("$BROKERS", target.bootstrap) for word in shlex.split(line)]
        target.java_tool(_TOOLS[program], words[1:])


def _ours(target: EmbeddedKafka, procedure: str, verb: str) -> list[str]:
    """The printed command of our own, for a script."""
    (line,) = _lines(procedure, f"logkeep {verb}")
    return [*(word.replace("$BROKERS", target.bootstrap) for word in shlex.split(line)[1:]), "--yes"]


def test_as_the_dry_run_says(kafka: EmbeddedKafka, topics: Matrix, repo: Filled, tmp_path: Path) -> None:
    """Every line of the procedure is typed as it is printed: it asks for exactly what the dry run was asked for."""
    old = topics.create(f"filed-{uuid.uuid4().hex[:8]}", 2, {"retention.ms": "999999999999", "flush.ms": "1000"})
    beside = topics.create(f"{old}-beside")
    topic = f"{old}-back"
    producer = topics.producer(compression_type="zstd")
    for i in range(60):
        producer.produce(old, b"value %d" % i, b"%d" % i, i % 2, timestamp=1_700_000_000_000 + i)
        producer.produce(beside, b"not wanted", partition=0)
    producer.flush(30)
    commit(kafka.bootstrap, f"{old}-readers", {(old, 0): 7, (beside, 0): 1})
    repo.json("kafka", "backup", "--bootstrap-servers", kafka.bootstrap, "--topics", f"{old}.*")
    target = EmbeddedKafka(tmp_path / "broker", cache_dir(os.environ, Path.home()), properties=BROKER)
    data = tmp_path / "broker" / "data"
    cut = ("--until-time", "1700000000049", "--until-offset", f"{old}:1=20")
    command = (
        "kafka",
        "restore",
        "latest",
        "--to-log-dirs",
        str(data),
        "--topics",
        old,
        "--rename",
        f"s/{old}$/{topic}/",
        *cut,
    )
    with target:
        told = repo.json(*command, "--dry-run")
        procedure = told["offline"]["procedure"]
        assert told["offline"]["running"]
        assert told["offline"]["elsewhere"] == [f"{topic}-0", f"{topic}-1"]
        refused = repo.run(*command, "--yes", code=31)
        assert "stop" in one_error(refused.stderr)
        refused = repo.run(*command, "--offsets", "translate", code=40)
        assert "--offsets is only for a running cluster" in one_error(refused.stderr)
        refused = repo.run(
            "kafka", "restore", "latest", "--to-log-dirs", str(data), "--until-time", "1990-01-01", "-n", code=40
        )
        assert "nothing would be restored" in one_error(refused.stderr)
        refused = repo.run(*command, "--by-record", code=40)
        assert "--by-record is only for a running cluster" in one_error(refused.stderr)
        refused = repo.run(
            "kafka", "restore", "latest", "--bootstrap-servers", target.bootstrap, "--here-only", code=40
        )
        assert "--here-only is only for files" in one_error(refused.stderr)
        _as_told(target, procedure, "kafka-topics.sh")
        while not (data / f"{topic}-1" / "partition.metadata").exists():
            pass
    printed = _ours(target, procedure, "kafka restore")
    done = repo.json(*printed)
    assert done["verdict"] == "proven"
    assert {Path(f["path"]).parent.name for f in done["offline"]["files"]} == {f"{topic}-0", f"{topic}-1"}
    again = repo.json(*printed)
    assert again["offline"]["files"] == done["offline"]["files"], "run again, it only proves"
    kept = repo.json("receipts", "list")["restores"]
    assert [(row["id"], row["state"]) for row in kept] == [(each["restore"], "proven") for each in (done, again)]
    shown = repo.run("receipts", "show", str(done["restore"])).stdout
    assert f"{data} (cluster " in shown
    refused = repo.run("kafka", "restore", "--resume", str(done["restore"]), "--bootstrap-servers", "x:1", code=40)
    assert "kafka-offline" in one_error(refused.stderr)
    with target:
        for partition, end in ((0, 25), (1, 20)):
            whole = seen(kafka.bootstrap, old, partition)
            assert seen(target.bootstrap, topic, partition) == {o: r for o, r in whole.items() if o < end}
            assert watermarks(target.bootstrap, topic, partition) == (0, end)
        _as_told(target, procedure, "kafka-configs.sh")
        more = Matrix(target).producer(enable_idempotence=True)
        more.produce(topic, b"new", partition=0)
        assert more.flush(30) == 0
        assert watermarks(target.bootstrap, topic, 0)[1] == 26
        moved = repo.json(*_ours(target, procedure, "kafka groups restore"), code=2)  # of its two topics one is back
        assert [(r["topic"], r["partition"], r["offset"]) for r in moved["positions"]] == [
            (topic, 0, 7),
            (beside, 0, None),
        ]
