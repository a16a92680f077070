"""Tasks for the engine's tests: top-level functions of an importable module, as real ones are."""

import ctypes
import json
import os
import resource
import signal
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pyarrow as pa

import logkeep
from logkeep.errors import Damaged, StoreBusy, StoreFull
from logkeep.model.work import Progress


class Answer(msgspec.Struct, frozen=True):
    """What every task here returns."""

    text: str
    pid: int


class Unit(msgspec.Struct, frozen=True):
    """A number, and a directory for traces of the attempts."""

    number: int
    traces: str = ""


def weight(unit: Unit) -> int:
    return unit.number


def _leave_trace(unit: Unit) -> int:
    """Note this attempt in the directory; how many there were before it."""
    earlier = len(list(Path(unit.traces).glob(f"{unit.number}-*")))
    (Path(unit.traces) / f"{unit.number}-{earlier}-{os.getpid()}").touch()
    return earlier


def echo(unit: Unit, progress: Progress) -> Answer:
    progress(unit.number)
    return Answer(f"unit {unit.number}", os.getpid())


def wait_for_the_others(unit: Unit, progress: Progress) -> Answer:
    """The heaviest unit of ten ends when all others have ended; it leaves a file beside the traces at its begin."""
    if unit.number == 9:
        (Path(unit.traces).parent / "begun").touch()
    while unit.number == 9 and len(list(Path(unit.traces).iterdir())) < 9:
        time.sleep(0.02)
    progress(unit.number)
    _leave_trace(unit)
    return Answer(f"unit {unit.number}", os.getpid())


def surroundings(unit: Unit, progress: Progress) -> Answer:
    """The directory that the worker runs in, its mode, and where it imports from."""
    here = Path.cwd()
    found = (str(here), stat.S_IMODE(here.stat().st_mode), bool(sys.flags.safe_path), sys.path)
    return Answer(json.dumps(found), os.getpid())


def fail_twice(unit: Unit, progress: Progress) -> Answer:
    progress(1000)
    if _leave_trace(unit) < 2:
        raise ConnectionError("the line dropped")
    return echo(unit, lambda _more: None)


def die_once(unit: Unit, progress: Progress) -> Answer:
    if _leave_trace(unit) == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return echo(unit, progress)


def die_always(unit: Unit, progress: Progress) -> Answer:
    os.kill(os.getpid(), signal.SIGKILL)
    return echo(unit, progress)


def store_full(unit: Unit, progress: Progress) -> Answer:
    _leave_trace(unit)
    raise StoreFull("no space left", subject="object-7", remedy="buy a disk")


def store_full_while_others_wait(unit: Unit, progress: Progress) -> Answer:
    """The heaviest unit fails at once, all others would take ten minutes."""
    if unit.number == 9:
        return store_full(unit, progress)
    time.sleep(600)
    return echo(unit, progress)


def store_busy(unit: Unit, progress: Progress) -> Answer:
    _leave_trace(unit)
    raise StoreBusy("slow down", subject="bucket-1")


def divide(unit: Unit, progress: Progress) -> Answer:
    _leave_trace(unit)
    return Answer(str(1 // 0), 0)


def count_until_told(unit: Unit, progress: Progress) -> Answer:
    """Report bytes, then wait for a file: the test makes it when it has seen the bytes."""
    progress(500)
    while not (Path(unit.traces) / "seen").exists():
        time.sleep(0.05)
    return echo(unit, lambda _more: None)


def meet(unit: Unit, progress: Progress) -> Answer:
    """Wait until another unit runs in another process at the same time; tell where logkeep was imported from."""
    _leave_trace(unit)
    while len(list(Path(unit.traces).iterdir())) < 2:
        time.sleep(0.05)
    progress(unit.number)
    return Answer(logkeep.__file__, os.getpid())


def meet_and_report(unit: Unit, progress: Progress) -> Answer:
    """As `meet`, and as `surroundings`; with the limits of core dumps."""
    met = meet(unit, progress)
    limits = resource.getrlimit(resource.RLIMIT_CORE)
    return Answer(json.dumps([met.text, surroundings(unit, progress).text, limits]), met.pid)


def hang_in_c(unit: Unit, progress: Progress) -> Answer:
    """Deaf to everything but SIGKILL: C code that keeps the interpreter lock, hang-up and terminate ignored."""
    for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    _leave_trace(unit)
    ctypes.PyDLL(None).sleep(600)
    return echo(unit, progress)


def squares(unit: Unit) -> Iterator[pa.RecordBatch]:
    """Rows for a query; a negative unit is damaged."""
    if unit.number < 0:
        raise Damaged("not a number to square", subject=f"unit {unit.number}", remedy="take another")
    numbers = list(range(unit.number))
    columns = {"unit": [unit.number] * unit.number, "square": [number * number for number in numbers]}
    yield pa.RecordBatch.from_pydict(columns, schema=pa.schema([("unit", pa.int64()), ("square", pa.int64())]))
