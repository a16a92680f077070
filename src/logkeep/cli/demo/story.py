"""The chapters of the demo, in the order in which they are told."""

from collections.abc import Callable

from logkeep.cli.demo.stage import Stage
from logkeep.embedded.kafka import EmbeddedKafka

Chapter = Callable[[Stage], None]


def start_kafka(stage: Stage) -> None:
    """A real broker, fetched by its Maven coordinates and started in its own process."""
    kafka = EmbeddedKafka(stage.directory / "kafka", stage.cache)
    with stage.step(f"start a real Kafka {kafka.release.version} broker"):
        stage.say(f"   its jars are kept in {stage.cache}")
        stage.resources.callback(kafka.stop)  # before the start: Ctrl-C may come while it starts
        kafka.start()
        stage.say(f"   listening on {kafka.bootstrap}")
    with stage.step("ask the broker with Apache's own tool"):
        tool = "org.apache.kafka.tools.TopicCommand"
        topic = ["--create", "--topic", "orders", "--partitions", "3"]
        kafka.java_tool(tool, ["--bootstrap-server", kafka.bootstrap, *topic])
        listed = kafka.java_tool(tool, ["--bootstrap-server", kafka.bootstrap, "--list"])
        stage.say(f"   topics: {', '.join(listed.split())}")
    with stage.step("stop the broker"):
        kafka.stop()


def make_repository(stage: Stage) -> None:
    """Probe the store, create a repository in it, list what it holds."""
    url = f"file://{stage.repository}"
    stage.repository.mkdir(mode=0o700)
    with stage.step("ask what the store can do"):
        stage.logkeep("store", "probe", url)
    with stage.step("create a repository"):
        stage.logkeep("init", "-r", url)
    with stage.step("list its backups"):
        stage.logkeep("list", "-r", url)
        stage.logkeep("status", "-r", url)


STORY: tuple[Chapter, ...] = (make_repository, start_kafka)
