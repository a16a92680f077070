"""The ZooKeeper of the guide: a server, and an ensemble of three, that the page's reader starts and stops.

`python -m tests.docs.zookeeper start|stop [zk1.cfg]` does what `zkServer.sh` does; `serve` stays until it is ended.
Addresses come from the environment, where the page's reader has their own: `ZK` for the server that stands alone, `ZK1`
to `ZK3` for the members, `ZK_PEERS` for how members reach each other. Data lies where the page says.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient

from logkeep.embedded.zookeeper import EmbeddedZooKeeper

ALONE = "zoo.cfg"
MEMBERS = ("zk1", "zk2", "zk3")
_SETTINGS = {"preAllocSize": "1024"}
"""It takes a snapshot and begins a log where it is started, and nowhere by chance."""


class GuideMember(EmbeddedZooKeeper):
    """One of three. It serves nobody before a second one is there."""

    def properties(self) -> dict[str, str]:
        own = {key: value for key, value in super().properties().items() if not key.startswith("clientPort")}
        ports = os.environ["ZK_PEERS"].split(",")
        for number, name in enumerate(MEMBERS, 1):
            quorum, election = ports[2 * number - 2 : 2 * number]
            client = os.environ[name.upper()]
            own[f"server.{number}"] = f"127.0.0.1:{quorum}:{election}:participant;{client}"
        return own | {"initLimit": "40", "syncLimit": "20"}


def guide_server(config: str = ALONE) -> EmbeddedZooKeeper:
    name = config.removesuffix(".cfg")
    place, cache = _place(config), Path(os.environ["SCENE_CACHE"])
    if config == ALONE:
        here = Path("zookeeper").absolute()
        server = EmbeddedZooKeeper(place, cache, settings=_SETTINGS, data_dir=here / "data", log_dir=here / "datalog")
        server.client = os.environ["ZK"]
    else:
        here = Path(name).absolute()
        server = GuideMember(
            place, cache, settings=_SETTINGS, data_dir=here / "data", log_dir=here / "datalog",
            my_id=1 + MEMBERS.index(name),
        )  # fmt: skip
        server.client = os.environ[name.upper()]
    server.port = int(server.client.rpartition(":")[2])
    return server


def _place(config: str) -> Path:
    return Path("..", "zookeeper" if config == ALONE else config.removesuffix(".cfg")).absolute()


def start(config: str = ALONE) -> None:
    place = _place(config)
    place.mkdir(exist_ok=True)
    with (place / "guide.log").open("ab") as log:
        command = [sys.executable, "-m", "tests.docs.zookeeper", "serve", config]
        running = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    while not (place / "ready").exists():
        if running.poll() is not None:
            raise SystemExit((place / "guide.log").read_text())
        time.sleep(0.05)
    print("Starting zookeeper ... STARTED")


def stop(config: str = ALONE) -> None:
    ready = _place(config) / "ready"
    os.kill(int(ready.read_text()), signal.SIGTERM)
    while ready.exists():
        time.sleep(0.05)
    print("Stopping zookeeper ... STOPPED")


def serve(config: str = ALONE) -> None:
    ended, ready = threading.Event(), _place(config) / "ready"
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    server = guide_server(config)
    try:
        server.launch()
        if config == ALONE:
            server.wait_until_serving()
        ready.with_suffix(".new").write_text(str(os.getpid()))
        ready.with_suffix(".new").replace(ready)
        ended.wait()
    finally:
        server.stop()
    ready.unlink()


def client(hosts: str | None = None) -> Any:
    """Connected; the caller stops it."""
    connected = KazooClient(hosts=hosts or os.environ["ZK"])
    connected.start(timeout=60)
    return connected


def ensemble_client() -> Any:
    return client(",".join(os.environ[name.upper()] for name in MEMBERS))


if __name__ == "__main__":
    {"start": start, "stop": stop, "serve": serve}[sys.argv[1]](*sys.argv[2:3])
