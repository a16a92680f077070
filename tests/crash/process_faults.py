"""The faults of one victim process: at a call of its store, or at a step in its file system."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from logkeep.store.access import open_store
from tests.crash.power_loss import PowerLoss
from tests.crash.system_calls import SystemCalls
from tests.crash.victims import plan_of
from tests.support.faults.store import FaultyStore

SYSTEM_CALL, UNSYNCED = "system call", "unsynced bytes dropped"
_STEPS = ("fsync", "fdatasync", "pwrite", "ftruncate", "rename", "replace", "link", "unlink", "rmdir", "mkdir")


class ProcessFaults:
    """`store` is that of `url`, in which calls fail as planned. `roots` lose what was not synced."""

    def __init__(
        self, url: str, fault: str, call: int, environment: Mapping[str, str], roots: Sequence[Path] = ()
    ) -> None:
        os.environ.update(environment)
        self._loss = PowerLoss(*roots) if fault == UNSYNCED else None
        at = call if fault in (SYSTEM_CALL, UNSYNCED) else -1
        self._steps = SystemCalls(_STEPS, at, instead=self._loss.happen if self._loss else None)
        self.store = FaultyStore(open_store(url), plan_of(fault, call))

    def begin(self) -> None:
        if self._loss is not None:
            self._loss.watch()
        self._steps.watch()

    def counted(self) -> dict[str, int]:
        return {"calls": len(self.store.calls), "steps": self._steps.count}


def path_of(url: str) -> Path:
    """Of a store in a directory; of another one a path that does not exist."""
    return Path(url.removeprefix("file://"))
