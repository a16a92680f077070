"""The demo's chapter of backup sets: an application, the Kafka and the ZooKeeper that it uses, under one id."""

import re
import subprocess
import sys
import time
from pathlib import Path

from logkeep.cli.demo.shop import Shop
from logkeep.cli.demo.stage import Stage
from logkeep.cli.demo.zookeeper_story import ZkCliUser
from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.embedded.zookeeper import EmbeddedZooKeeper
from logkeep.errors import HostFailed, InvalidAnswer, LogkeepError
from logkeep.model.shell_words import shell_line
from logkeep.zookeeper.server.four_letter import four_letter, parse_srvr

_APPLICATION, _KAFKA, _ZOOKEEPER = "till", "till-kafka", "till-zk"
_SOLD, _REPORTED = 200, 150
_PATIENCE_S = 60.0
_PROGRAM = f'''"""A till: it sends what it sold to Kafka and ZooKeeper, and reports how far they have it."""

from logkeep.application import Application

till = Application("{_APPLICATION}", partitions=2)

@till.on("delivered")
def delivered(command, state, context):
    state[command.key] = command.value
    context.external(command.key, command.value)

if __name__ == "__main__":
    till.main()
'''


def backup_set_chapter(stage: Stage) -> None:
    """Three systems, one id, one certificate."""
    kafka, server, zxid = _start_servers(stage)
    with stage.step("start an application that reports how far both have what it sold"):
        application = _start_application(stage)
        _send(stage, f"{_KAFKA}/orders/0", _REPORTED - 1)
        _send(stage, _ZOOKEEPER, zxid)
    with stage.step("back up each of them alone, for the first time"):
        stage.logkeep("app", "backup", _APPLICATION, "-q")
        stage.logkeep("kafka", "backup", "--source", _KAFKA, "-q")
        stage.logkeep("zookeeper", "backup", "--source", _ZOOKEEPER, "-q")
    with stage.step("back up all of them under one id, while they run"):
        members = ",".join((_KAFKA, _ZOOKEEPER, _APPLICATION))
        taken = stage.logkeep("backup-set", "take", "--members", members, "-q")
    with stage.step("certify the cut: what the application has reported is in the other backups"):
        stage.logkeep("verify", _id(taken), "--level", "cut", "--source", _APPLICATION, "-q")
    with stage.step("show the set, and the commands that restore it"):
        stage.logkeep("backup-set", "status")
    with stage.step("stop all of them"):
        _stop(application)
        server.stop()
        kafka.stop()


def _start_servers(stage: Stage) -> tuple[EmbeddedKafka, EmbeddedZooKeeper, int]:
    kafka = EmbeddedKafka(stage.directory / "till-kafka", stage.cache)
    server = EmbeddedZooKeeper(stage.directory / "till-zookeeper", stage.cache)
    with stage.step("start a Kafka broker and a ZooKeeper server for a till"):
        for started in (kafka, server):
            stage.resources.callback(started.stop)  # before the start: Ctrl-C may come while it starts
            started.start()
        stage.export("LOGKEEP_KAFKA_BOOTSTRAP_SERVERS", kafka.bootstrap)
        stage.export("LOGKEEP_ZOOKEEPER_DATA_DIR", str(server.data_dir))
        stage.export("LOGKEEP_ZOOKEEPER_HOST", server.client)
        shop = Shop(kafka)
        shop.create("orders", 1)
        shop.write("orders", [("by:till", f"order-{number}", "sold") for number in range(_SOLD)])
        ZkCliUser(server).type("create /till open")
        stage.say(f"   orders: {_SOLD} records; the application will have heard of {_REPORTED}")
    state = parse_srvr(four_letter(server.client, "srvr", 10))
    if state is None:
        raise InvalidAnswer("the server does not report its zxid", subject=server.client)
    return kafka, server, state.zxid


def _start_application(stage: Stage) -> "subprocess.Popen[bytes]":
    program, data = stage.directory / "till.py", stage.directory / "till"
    program.write_text(_PROGRAM)
    stage.export("LOGKEEP_APPLICATION_DATA", str(data))
    command = [*_command(program, "run", data), "--repository", f"file://{stage.repository}"]
    stage.say(f"$ {shell_line(*command)} &")
    application = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    stage.resources.callback(_stop, application)
    _wait_for(data / "control.sock", application)
    return application


def _command(program: Path, verb: str, data: Path) -> list[str]:
    return [sys.executable, str(program), verb, "--data", str(data)]


def _wait_for(socket: Path, application: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + _PATIENCE_S
    while not socket.exists():
        if application.poll() is not None or time.monotonic() > until:
            raise HostFailed("the application did not start", subject=str(socket.parent))
        time.sleep(0.05)


def _send(stage: Stage, name: str, position: int) -> None:
    data = stage.directory / "till"
    command = [*_command(stage.directory / "till.py", "send", data), "delivered", name, str(position)]
    stage.say(f"$ {shell_line(*command)}")
    subprocess.run(command, check=True, capture_output=True, timeout=_PATIENCE_S)


def _stop(application: "subprocess.Popen[bytes]") -> None:
    application.terminate()
    try:
        application.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        application.kill()
        application.wait()


def _id(taken: str) -> str:
    found = re.search(r"backup set (\d+): completed", taken)
    if found is None:
        raise LogkeepError("the set is not completed", subject="logkeep backup-set take")
    return found[1]
