"""The ZooKeeper of the guide: one server that the page's reader starts and stops with `zkServer.sh`.

`python -m tests.docs.zookeeper start|stop` does what the script of that name does; `serve` stays until it is ended.
Its address comes from the environment, where the page's reader has their own: `ZK`. Data lies where the page says.
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

_SERVER = Path("../zookeeper").absolute()
_READY = _SERVER / "ready"


def guide_server() -> EmbeddedZooKeeper:
    here = Path("zookeeper").absolute()
    settings = {"snapCount": "40", "preAllocSize": "1024"}
    server = EmbeddedZooKeeper(
        _SERVER, Path(os.environ["SCENE_CACHE"]), settings=settings, data_dir=here / "data", log_dir=here / "datalog"
    )
    server.client = os.environ["ZK"]
    server.port = int(server.client.rpartition(":")[2])
    return server


def start() -> None:
    _SERVER.mkdir(exist_ok=True)
    with (_SERVER / "guide.log").open("ab") as log:
        command = [sys.executable, "-m", "tests.docs.zookeeper", "serve"]
        running = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    while not _READY.exists():
        if running.poll() is not None:
            raise SystemExit((_SERVER / "guide.log").read_text())
        time.sleep(0.05)
    print("Starting zookeeper ... STARTED")


def stop() -> None:
    os.kill(int(_READY.read_text()), signal.SIGTERM)
    while _READY.exists():
        time.sleep(0.05)
    print("Stopping zookeeper ... STOPPED")


def serve() -> None:
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    with guide_server():
        _READY.with_suffix(".new").write_text(str(os.getpid()))
        _READY.with_suffix(".new").replace(_READY)
        ended.wait()
    _READY.unlink()


def client() -> Any:
    """Connected; the caller stops it."""
    connected = KazooClient(hosts=os.environ["ZK"])
    connected.start(timeout=30)
    return connected


if __name__ == "__main__":
    {"start": start, "stop": stop, "serve": serve}[sys.argv[1]]()
