"""`logkeep demo --stay`: real servers with data in them, for a user who wants to try commands by hand.

When they can be used, the demo directory has a file `env`, which a shell reads with `.`: it names the servers and the
repository, and puts Apache's own scripts (`kafka-topics.sh`, `zkCli.sh`, …) on the path.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Protocol

from logkeep.cli.demo.stage import Stage
from logkeep.cli.demo.story import open_small_shop
from logkeep.cli.demo.zookeeper_story import open_settings
from logkeep.engine.stop import SignalStop
from logkeep.model.shell_words import shell_line, shell_word

ENV = "env"
_TOOLS = "org.apache.kafka.tools"
_KAFKA_SCRIPTS = {
    "kafka-topics.sh": f"{_TOOLS}.TopicCommand",
    "kafka-console-producer.sh": f"{_TOOLS}.ConsoleProducer",
    "kafka-console-consumer.sh": f"{_TOOLS}.consumer.ConsoleConsumer",
    "kafka-consumer-groups.sh": f"{_TOOLS}.consumer.group.ConsumerGroupCommand",
}
_ZOOKEEPER_SCRIPTS = {"zkCli.sh": "org.apache.zookeeper.ZooKeeperMain"}
_POLL_S = 1.0


class _Server(Protocol):
    """An embedded server of any kind."""

    def command(self, main_class: str, arguments: list[str]) -> list[str]: ...
    def check_running(self) -> None: ...
    def stop(self) -> None: ...


def _kafka(stage: Stage) -> _Server:
    kafka = open_small_shop(stage)
    stage.exported |= {"BROKERS": kafka.bootstrap, "CLUSTER": kafka.cluster}
    _write_scripts(stage.directory / "bin", _KAFKA_SCRIPTS, kafka)
    return kafka


def _zookeeper(stage: Stage) -> _Server:
    server, _ = open_settings(stage)
    stage.exported["ZK"] = server.client
    _write_scripts(stage.directory / "bin", _ZOOKEEPER_SCRIPTS, server)
    return server


SERVERS: dict[str, Callable[[Stage], _Server]] = {"kafka": _kafka, "zookeeper": _zookeeper}
"""By kind of source, in the order in which they start."""
_FIRST_COMMANDS = {
    "kafka": ("logkeep kafka backup --source shop",),
    "zookeeper": ("logkeep zookeeper backup --source settings",),
}


def stay(stage: Stage, kinds: Iterable[str]) -> None:
    """Start servers and keep them until SIGINT or SIGTERM. Raises `ServerFailed` if one ends by itself."""
    chosen = list(kinds)
    stage.exported["LOGKEEP_REPO"] = f"file://{stage.repository}"
    servers = [SERVERS[kind](stage) for kind in chosen]
    with SignalStop() as stop:
        write_environment(stage.directory, stage.exported)
        for line in _instructions(stage.directory / ENV, chosen):
            stage.say(line)
        while not stop.requested:
            stop.wait(_POLL_S)
            for server in servers:
                server.check_running()
    for server in servers:
        server.stop()


def write_environment(directory: Path, exported: Mapping[str, str]) -> None:
    """Write `env`. A shell never reads half of it: it appears when it is complete."""
    lines = [f"export {name}={shell_word(value)}" for name, value in exported.items()]
    lines.append(f'export PATH={shell_word(directory / "bin")}:"$PATH"')
    unfinished = directory / f"{ENV}.unfinished"
    unfinished.write_text("".join(f"{line}\n" for line in lines))
    unfinished.rename(directory / ENV)


def _write_scripts(directory: Path, scripts: Mapping[str, str], server: _Server) -> None:
    """Apache's tools under the names that they have in Apache's releases."""
    directory.mkdir(exist_ok=True)
    for name, main_class in scripts.items():
        script = directory / name
        script.write_text(f'#!/bin/sh\nexec {shell_line(*server.command(main_class, []))} "$@"\n')
        script.chmod(0o700)


def _instructions(environment: Path, kinds: list[str]) -> list[str]:
    first = [line for kind in kinds for line in _FIRST_COMMANDS[kind]]
    typed = [f"$ {line}" for line in (f". {shell_word(environment)}", "logkeep init", *first)]
    return ["== ready, until Ctrl-C or SIGTERM; in another shell:", *typed]
