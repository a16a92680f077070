"""The core limits of what a command starts: servers, Spark's JVM and its Python workers, read while they run."""

import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from logkeep.engine.spark.jvm.processes import RunningProcess, descendants

NONE = ("0", "0")
"""No core is kept, and the process cannot change that."""
_SIGNS = {
    b"SparkSubmit": "JVM of Spark",
    b"pyspark.daemon": "Python worker",
    b"kafka.Kafka": "Kafka",
    b"QuorumPeerMain": "ZooKeeper",
}
"""What is in their command lines. A process that has just been forked shows its parent's."""


@contextmanager
def watched_core_limits(ancestor: int) -> Iterator[dict[str, set[tuple[str, str]]]]:
    """Soft and hard limit by kind, of all processes below one that start in this block, for which cores are allowed.

    A process that this block starts may keep cores too, unless it forbids them itself.
    """
    before = {process.pid for process in descendants(ancestor)}
    found: dict[str, set[tuple[str, str]]] = {}
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.1):
            for process in descendants(ancestor):
                if process.pid not in before:
                    _note(process, found)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        with _cores_allowed():
            yield found
    finally:
        over.set()
        watcher.join()


def _note(process: RunningProcess, found: dict[str, set[tuple[str, str]]]) -> None:
    place = Path(f"/proc/{process.pid}")
    try:
        command = (place / "cmdline").read_bytes()
        limits = (place / "limits").read_text().splitlines()
    except OSError:
        return  # gone while we looked
    for sign, kind in _SIGNS.items():
        if sign in command:
            words = next(line for line in limits if line.startswith("Max core file size")).split()
            found.setdefault(kind, set()).add((words[4], words[5]))


@contextmanager
def _cores_allowed() -> Iterator[None]:
    """As far as this process may allow them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))
