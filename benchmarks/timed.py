"""An engine that also tells when its first unit began, when its last one ended, and how much memory a worker took.

The notes are files: workers are other processes.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from logkeep.model.work import Engine, Progress, ResultT, Task, UnitT


@dataclass(frozen=True)
class Noting:
    """A task that writes down when it ran."""

    task: Callable[..., object]
    notes: Path

    def __call__(self, unit: object, progress: Progress) -> object:
        _forget_peak()
        started = time.time()
        result = self.task(unit, progress)
        note = {
            "started": started,
            "ended": time.time(),
            "peak_mb": _memory_mb("VmHWM"),
            "files_mb": _memory_mb("RssFile"),
        }
        (self.notes / uuid4().hex).write_text(json.dumps(note))
        return result


def _forget_peak() -> None:
    """Workers are used again: what an earlier unit took is not this one's."""
    Path("/proc/self/clear_refs").write_text("5")


def _memory_mb(name: str) -> float:
    """`VmHWM` is the most resident memory since `_forget_peak`."""
    found = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return int(found.split()[1]) * 1024 / 1e6


@dataclass(frozen=True)
class Span:
    """From the beginning of the first unit to the end of the last."""

    seconds: float
    peak_mb: float
    files_mb: float
    """Of the peak: pages of library files, which processes share."""
    cpu_s: float
    """Of all client processes, while the jobs ran."""


class TimedEngine:
    """The engine that is handed in, with its units noted in a directory."""

    def __init__(self, engine: Engine, notes: Path, cpu_s: Callable[[], float]) -> None:
        """`cpu_s` tells the CPU seconds of all client processes so far."""
        self._engine, self._notes, self._cpu_s = engine, notes, cpu_s
        self._spent_s = 0.0
        notes.mkdir(parents=True, exist_ok=True)

    def map(
        self,
        task: Task[UnitT, ResultT],
        units: Sequence[UnitT],
        result: type[ResultT],
        *,
        label: str,
        weight: Callable[[UnitT], int],
    ) -> list[ResultT]:
        noting: Task[UnitT, ResultT] = Noting(task, self._notes)  # type: ignore[assignment]  # it returns what the task does
        before = self._cpu_s()
        results = self._engine.map(noting, units, result, label=label, weight=weight)
        self._spent_s += self._cpu_s() - before
        return results

    def at_once(self, units: int) -> int:
        return self._engine.at_once(units)

    def close(self) -> None:
        self._engine.close()

    def span(self) -> Span:
        """Of all units since the last call."""
        files = list(self._notes.iterdir())
        notes = [json.loads(file.read_text()) for file in files]
        for file in files:
            file.unlink()
        began, ended = min(n["started"] for n in notes), max(n["ended"] for n in notes)
        spent_s, self._spent_s = self._spent_s, 0.0
        largest = max(notes, key=lambda note: float(note["peak_mb"]))
        return Span(ended - began, largest["peak_mb"], largest["files_mb"], spent_s)
