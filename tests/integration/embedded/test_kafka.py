"""The embedded broker: up, used by Apache's own tools, down, nothing left; and jars that cannot be had."""

import os
import signal
from pathlib import Path

import pytest

from logkeep.embedded.kafka import EmbeddedKafka, answers
from logkeep.embedded.zookeeper import JETTY
from logkeep.engine.spark.jvm.jars import resolve_jars
from logkeep.engine.spark.jvm.processes import find_process
from logkeep.errors import ServerFailed
from logkeep.model.cache import cache_dir
from tests.support.processes import program, wait_for

pytestmark = pytest.mark.xdist_group("kafka-embedded")
TOPICS = "org.apache.kafka.tools.TopicCommand"


def test_a_broker_serves_apaches_tools_keeps_its_data_and_goes(tmp_path: Path) -> None:
    kafka = EmbeddedKafka(tmp_path / "kafka", cache_dir(os.environ, Path.home()))
    with kafka:
        pid = kafka.pid
        server = ["--bootstrap-server", kafka.bootstrap]
        kafka.java_tool(TOPICS, [*server, "--create", "--topic", "orders", "--partitions", "3"])
    assert pid is not None
    assert find_process(pid) is None
    assert not answers("127.0.0.1", kafka.port)
    with kafka:
        assert kafka.java_tool(TOPICS, [*server, "--list"]).split() == ["orders"]
        with pytest.raises(ServerFailed, match="orders"):
            kafka.java_tool(TOPICS, [*server, "--create", "--topic", "orders"])
    assert sorted(path.name for path in kafka.directory.iterdir()) == [
        "data",
        "log4j2.properties",
        "server.log",
        "server.properties",
    ]


def test_a_broker_dies_with_the_process_that_started_it(tmp_path: Path) -> None:
    cache = cache_dir(os.environ, Path.home())
    with program(
        ["tests.integration.embedded.broker_program", str(tmp_path / "kafka"), str(cache)], tmp_path, true_start=True
    ) as run:
        assert run.stdout is not None
        pid = int(run.stdout.readline())
        assert find_process(pid) is not None
        run.send_signal(signal.SIGKILL)
        wait_for(lambda: find_process(pid) is None, "the broker to go")


def test_a_broker_that_cannot_start_names_its_log(tmp_path: Path) -> None:
    kafka = EmbeddedKafka(tmp_path, cache_dir(os.environ, Path.home()), properties={"compression.type": "nonsense"})
    with pytest.raises(ServerFailed) as caught:
        kafka.start()
    assert "nonsense" in str(caught.value) + "".join(getattr(caught.value, "__notes__", []))


def test_jars_are_resolved_once_and_a_dead_registry_is_named(tmp_path: Path) -> None:
    dead = {"PATH": os.environ["PATH"], "JAVA_TOOL_OPTIONS": "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=9"}
    jetty = r"org\.eclipse\.jetty:jetty-server:\S+, \S+: jars could not be resolved"
    with pytest.raises(ServerFailed, match=jetty) as caught:
        resolve_jars(JETTY, tmp_path, dead)
    assert "mirror" in caught.value.remedy
    assert list((tmp_path / "jars").iterdir()) == []
    known = cache_dir(os.environ, Path.home())
    release = EmbeddedKafka(tmp_path, known).release
    first = resolve_jars(release.coordinates, known)
    assert first == resolve_jars(release.coordinates, known, {"PATH": "/nowhere"})
    assert any(path.name.endswith(f"kafka_2.13-{release.version}.jar") for path in first)
