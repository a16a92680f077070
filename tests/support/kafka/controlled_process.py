"""A process of the shop whose steps and store calls a test controls.

`python -m tests.support.kafka.controlled_process CONTROL NAME SHOP run …` runs it. CONTROL is a directory.
`plan.json` there says what goes wrong in the process that it concerns (`Order`). NAME.log gets a line for each step of
a checkpoint and for each fault: what happened is counted from it.
"""

import os
import signal
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from logkeep.application import application_process
from logkeep.errors import StoreDenied, StoreFull
from logkeep.store import access
from logkeep.store.base import Store
from tests.support.faults.plan import Fault, busy_503, error_before, lost_ack
from tests.support.faults.store import FaultyStore
from tests.support.shop import large_shop

_POLL_S, _LONGEST_HOLD_S = 0.02, 20.0
_UNTOLD = (
    "state stored",
    "log piece",
    "snapshot piece",
    "appended event",
    "before event",
    "appended command",
    "appended ack",
)
_WRITES = ("put_new", "open_new", "write", "close")


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What goes wrong until the next order; one process is killed for an order at most."""

    number: int = 0
    scenario: str = ""
    partition: int = -1
    hold: str = ""
    """The step at which the thread of the partition waits until the process is killed."""
    kill: str = ""
    """The step at which the process of the partition is killed."""
    after: tuple[str, ...] = ()
    """Steps that the partition must have reached before that."""
    await_after: bool = False
    """Wait at the kill step until they are reached; else it is killed the next time."""
    store: str = ""
    """What store calls do: `denied`, `full`, `busy`, `unreachable`, `lost`, `slow`."""
    part: str = ""
    """In calls with this in the name of the object."""


SCENARIOS: Mapping[str, Order] = {
    "S1": Order(hold="copy: open the store", kill="before created"),
    "S2": Order(hold="before created", kill="log end"),
    "S3": Order(hold="before created", kill="copy: receipt stored"),
    "S4": Order(hold="log end", kill="appended created", after=("log end",), await_after=True),
    "S5": Order(hold="log end", kill="state stored", after=("log end", "appended created")),
    "S6": Order(hold="copy: open the store", kill="appended created"),
    "S7": Order(hold="copy: open the store", kill="state stored", after=("appended created",)),
}


class Control:
    """Writes orders, and reads what the processes say that they did."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(exist_ok=True)
        self.directory, self._number = directory, 0

    def order(self, order: Order) -> int:
        self._number += 1
        part = self.directory / "plan.part"
        part.write_bytes(msgspec.json.encode(msgspec.structs.replace(order, number=self._number)))
        part.replace(self.directory / "plan.json")
        return self._number

    def happened(self, number: int) -> bool:
        """A process was killed for this order."""
        return (self.directory / f"killed-{number}").exists()

    def lines(self) -> list[list[str]]:
        """Of all processes, in the order of time: time, process, partition, what, more."""
        found = [
            [time_s, path.stem, *rest]
            for path in self.directory.glob("*.log")
            for time_s, *rest in (line.split("\t") for line in path.read_text().splitlines())
        ]
        return sorted(found, key=lambda line: float(line[0]))


class _Controlled:
    def __init__(self, directory: Path, name: str) -> None:
        self._directory, self._out = directory, (directory / f"{name}.log").open("a", buffering=1)
        self._reached: dict[int, set[str]] = defaultdict(set)
        self._read_at, self._order, self._lock = 0, Order(), threading.Lock()
        self._say(-1, "started")

    def watch(self, partition: int, step: str) -> None:
        order = self._current()
        if step == "backup begun":
            self._reached[partition].clear()
        new = step == "state stored" and "appended created" in self._reached[partition]
        if step not in _UNTOLD or (new and step not in self._reached[partition]):
            self._say(partition, step)
        if step != "state stored" or new:
            self._reached[partition].add(step)
        if partition == order.partition and step == order.kill:
            self._kill(order, step)
        if partition == order.partition and step == order.hold:
            self._hold(order)

    def fault(self, _number: int, operation: str, name: str) -> Fault | None:
        order = self._current()
        if not order.store or order.part not in name or operation not in _WRITES:
            return None
        self._say(-1, "store", f"{order.store} {operation}")
        return _FAULTS[order.store]()

    def open(self, opened: Callable[[str], Store]) -> Callable[[str], Store]:
        return lambda url: FaultyStore(opened(url), self.fault)

    def _kill(self, order: Order, step: str) -> None:
        reached = self._reached[order.partition]
        if order.await_after:
            _wait(lambda: set(order.after) <= reached or self._changed(order))
        if not set(order.after) <= reached or self._changed(order):
            return
        with suppress(FileExistsError):
            (self._directory / f"killed-{order.number}").touch(exist_ok=False)
            self._say(order.partition, "killed", f"{order.scenario} at {step} after {sorted(reached)}")
            os.kill(os.getpid(), signal.SIGKILL)

    def _hold(self, order: Order) -> None:
        """Until the process is killed, or the order does not hold any more."""
        _wait(lambda: self._changed(order))

    def _changed(self, order: Order) -> bool:
        return self._current().number != order.number or (self._directory / f"killed-{order.number}").exists()

    def _current(self) -> Order:
        path = self._directory / "plan.json"
        with suppress(FileNotFoundError):
            at = path.stat().st_mtime_ns
            if at != self._read_at:
                self._order, self._read_at = msgspec.json.decode(path.read_bytes(), type=Order), at
                self._reached.clear()  # what is awaited begins with the order
        return self._order

    def _say(self, partition: int, what: str, more: str = "") -> None:
        with self._lock:
            self._out.write(f"{time.time():.3f}\t{partition}\t{what}\t{more}\n")


def _wait(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + _LONGEST_HOLD_S
    while not condition() and time.monotonic() < until:
        threading.Event().wait(_POLL_S)


_FAULTS: Mapping[str, Callable[[], Fault]] = {
    "denied": lambda: Fault(before=StoreDenied("the store answered 403 AccessDenied")),
    "full": lambda: Fault(before=StoreFull("no space is left on the device")),
    "busy": busy_503,
    "unreachable": error_before,
    "lost": lost_ack,
    "slow": lambda: Fault(delay_s=0.5),
}


def main(directory: str, name: str, shop: str, *arguments: str) -> None:
    controlled = _Controlled(Path(directory), name)
    vars(application_process)["_watch"] = lambda _environ: controlled.watch
    vars(access)["open_store"] = controlled.open(access.open_store)
    sys.argv[1:] = arguments
    large_shop(shop).main()


if __name__ == "__main__":
    main(*sys.argv[1:])
