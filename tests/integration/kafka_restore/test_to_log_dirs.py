"""The command that writes files: what its dry run prints is done, step by step, and a broker serves the result."""

import os
import shlex
import uuid
from pathlib import Path

import pytest

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.spark.cache import cache_dir
from tests.e2e.filled import Filled
from tests.e2e.test_bad_input import one_error
from tests.kafka.matrix import BROKER, Matrix
from tests.kafka.seen import seen, watermarks

pytestmark = pytest.mark.xdist_group("kafka-restore")
_TOOLS = {"kafka-topics.sh": "org.apache.kafka.tools.TopicCommand", "kafka-configs.sh": "kafka.admin.ConfigCommand"}


def _as_told(target: EmbeddedKafka, procedure: str, program: str) -> None:
    """Type the printed commands of one program."""
    lines = [line.strip() for line in procedure.splitlines() if line.strip().startswith(program)]
    assert lines
    for line in lines:
        words = [word.replace("$BROKERS", target.bootstrap) for word in shlex.split(line)]
        target.java_tool(_TOOLS[program], words[1:])


def test_as_the_dry_run_says(kafka: EmbeddedKafka, topics: Matrix, repo: Filled, tmp_path: Path) -> None:
    topic = topics.create(f"filed-{uuid.uuid4().hex[:8]}", 2, {"retention.ms": "999999999999", "flush.ms": "1000"})
    producer = topics.producer(compression_type="zstd")
    for i in range(60):
        producer.produce(topic, b"value %d" % i, b"%d" % i, i % 2, timestamp=1_700_000_000_000 + i)
    producer.flush(30)
    repo.json("kafka", "backup", "--bootstrap-servers", kafka.bootstrap, "--topics", topic)
    target = EmbeddedKafka(tmp_path / "broker", cache_dir(os.environ, Path.home()), properties=BROKER)
    data = tmp_path / "broker" / "data"
    cut = ("--until-time", "1700000000049", "--until-offset", f"{topic}:1=20")
    command = ("kafka", "restore", "--to-log-dirs", str(data), *cut)
    with target:
        told = repo.json(*command, "--dry-run")
        assert told["offline"]["running"]
        assert told["offline"]["elsewhere"] == [f"{topic}-0", f"{topic}-1"]
        refused = repo.run(*command, "--yes", code=31)
        assert "stop" in one_error(refused.stderr)
        refused = repo.run(*command, "--offsets", "translate", code=40)
        assert "--offsets is about a running cluster" in one_error(refused.stderr)
        refused = repo.run(*command, "--by-record", code=40)
        assert "--by-record is about a running cluster" in one_error(refused.stderr)
        refused = repo.run("kafka", "restore", "--bootstrap-servers", target.bootstrap, "--here-only", code=40)
        assert "--here-only is about files" in one_error(refused.stderr)
        _as_told(target, told["offline"]["procedure"], "kafka-topics.sh")
        while not (data / f"{topic}-1" / "partition.metadata").exists():
            pass
    assert f"--to-log-dirs {data}" in told["offline"]["procedure"]
    done = repo.json(*command, "--yes")
    assert done["verdict"] == "proven"
    assert {Path(f["path"]).parent.name for f in done["offline"]["files"]} == {f"{topic}-0", f"{topic}-1"}
    again = repo.json(*command, "--yes")
    assert again["offline"]["files"] == done["offline"]["files"], "run again, it only proves"
    kept = repo.json("receipts", "list")["restores"]
    assert [(row["id"], row["state"]) for row in kept] == [(each["restore"], "proven") for each in (done, again)]
    shown = repo.run("receipts", "show", str(done["restore"])).stdout
    assert f"{data} (cluster " in shown
    refused = repo.run("kafka", "restore", "--resume", str(done["restore"]), "--bootstrap-servers", "x:1", code=40)
    assert "kafka-offline" in one_error(refused.stderr)
    with target:
        for partition, end in ((0, 25), (1, 20)):
            whole = seen(kafka.bootstrap, topic, partition)
            assert seen(target.bootstrap, topic, partition) == {o: r for o, r in whole.items() if o < end}
            assert watermarks(target.bootstrap, topic, partition) == (0, end)
        _as_told(target, told["offline"]["procedure"], "kafka-configs.sh")
        more = Matrix(target).producer(enable_idempotence=True)
        more.produce(topic, b"new", partition=0)
        assert more.flush(30) == 0
        assert watermarks(target.bootstrap, topic, 0)[1] == 26
