"""How long until the first unit of work is done, with and without the class archive?

Each start is a process of its own. Run on an idle machine: `python benchmarks/session_start.py [ROUNDS]`.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import msgspec

from logkeep.engine.spark.engine import SparkEngine
from logkeep.engine.spark.jvm.class_archive import ClassArchive
from logkeep.engine.spark.settings import SparkSettings
from logkeep.model.work import Progress


class Nothing(msgspec.Struct, frozen=True):
    """The result of a task that does nothing."""


def do_nothing(_unit: int, _progress: Progress) -> Nothing:
    return Nothing()


def first_unit_s(cache: Path) -> float:
    """Start Spark, run one unit; seconds since the process began to."""
    from benchmarks import session_start  # noqa: PLC0415  # workers must be able to import the task by its name

    started = time.monotonic()
    with closing(SparkEngine(SparkSettings(cache, "local[2]"))) as engine:
        engine.map(session_start.do_nothing, [0], session_start.Nothing, label="start", weight=lambda _unit: 1)
        return time.monotonic() - started


def measure(cache: Path, rounds: int, *, archive: bool) -> float:
    """Median over processes; without the archive, it is removed before each of them and not recorded."""
    flag = "with" if archive else "without"
    runs = [[sys.executable, __file__, "one", flag, str(cache)] for _ in range(rounds)]
    answers = [subprocess.run(run, check=True, capture_output=True, text=True).stdout for run in runs]
    return statistics.median(float(answer) for answer in answers)


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    with tempfile.TemporaryDirectory() as name:
        cache = Path(name)
        without_s = measure(cache, rounds, archive=False)
        started = time.monotonic()
        measure(cache, 1, archive=True)
        recording_s = time.monotonic() - started
        with_s = measure(cache, rounds, archive=True)
    print("| start of Spark to the end of the first unit, local[2] | seconds | ratio |")
    print("|---|---|---|")
    print(f"| without the class archive | {without_s:.1f} | 1.00 |")
    print(f"| with it | {with_s:.1f} | {with_s / without_s:.2f} |")
    print(f"| the one run that records it, whole process | {recording_s:.1f} | |")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    if sys.argv[1:2] == ["one"]:
        if sys.argv[2] == "without":
            setattr(ClassArchive, "java_options", lambda _archive: [])  # noqa: B010  # neither use nor record
        print(first_unit_s(Path(sys.argv[3])))
    else:
        main()
