"""What memory does a Spark worker have before it has read a record? Step by step, in two workers at the same time.

    python -m benchmarks.worker_memory

RSS is what `top` shows. It has the pages of library files, which all processes share and which the kernel can drop: PSS
counts of a shared page only this process's share, USS only pages that no other process has. `files` are the pages of
files in RSS. The last lines are the files with the most pages.
"""

import os
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from msgspec import Struct

from logkeep.engine.spark.engine import SparkEngine
from logkeep.engine.spark.settings import SparkSettings
from logkeep.model.cache import cache_dir
from logkeep.model.work import Progress

_WORKERS, _TOGETHER_S, _SHOWN = 2, 2.0, 5
Figures = dict[str, float]


class Measured(Struct, frozen=True):
    steps: dict[str, Figures]


def measure_steps(_unit: int, _progress: Progress) -> Measured:
    """A task. Waits at the end, so that both workers are there when the last step is measured."""
    found = {}
    for name, step in _STEPS.items():
        step()
        found[name] = _memory_mb()
    return Measured({**found, "files": _mapped_files_mb()})


def _nothing() -> None:
    """What Spark's own worker has loaded, pandas among it."""


def _modules() -> None:
    import logkeep.kafka.datasets.export_task  # noqa: PLC0415 - it is measured
    import logkeep.kafka.datasets.files.record_files  # noqa: PLC0415
    import logkeep.kafka.datasets.sources.records_of_cluster  # noqa: F401, PLC0415


def _numba() -> None:
    from logkeep.formats.jit import compile_from_now_on  # noqa: PLC0415

    compile_from_now_on()


def _avro() -> None:
    from logkeep.formats.datasets.avro.reader import warm  # noqa: PLC0415

    warm()


def _all() -> None:
    from logkeep.formats.warm import warm  # noqa: PLC0415

    warm()


_STEPS: dict[str, Callable[[], None]] = {
    "Spark's worker": _nothing,
    "modules of an export": _modules,
    "numba": _numba,
    "kernels of Avro": _avro,
    "all kernels": _all,
    "both workers": lambda: time.sleep(_TOGETHER_S),
}


def _memory_mb() -> Figures:
    rows = Path("/proc/self/smaps_rollup").read_text().splitlines()[1:]
    kib = {name: int(rest.split()[0]) for name, _, rest in (row.partition(":") for row in rows)}
    own = kib["Private_Clean"] + kib["Private_Dirty"]
    counts = {"rss": kib["Rss"], "pss": kib["Pss"], "uss": own, "files": kib["Rss"] - kib["Anonymous"]}
    return {name: count * 1024 / 1e6 for name, count in counts.items()}


def _mapped_files_mb() -> Figures:
    """The files with the most pages in RSS."""
    kib, name = Counter[str](), ""
    for line in Path("/proc/self/smaps").read_text().splitlines():
        words = line.split()
        if not words[0].endswith(":"):
            name = Path(words[5]).name if len(words) > 5 and words[5].startswith("/") else ""
        elif words[0] == "Rss:" and name:
            kib[name] += int(words[1])
    return {name: count * 1024 / 1e6 for name, count in kib.most_common(_SHOWN)}


def main() -> None:
    settings = SparkSettings(cache_dir(os.environ, Path.home()), f"local[{_WORKERS}]")
    with closing(SparkEngine(settings)) as engine:
        engine.map(measure_steps, range(_WORKERS), Measured, label="compile", weight=lambda _: 1)
    with closing(SparkEngine(settings)) as engine:
        found = engine.map(measure_steps, range(_WORKERS), Measured, label="measure", weight=lambda _: 1)[0]
    for name, figures in found.steps.items():
        print(f"{name:22}" + ", ".join(f"{each} {mb:.0f} MB" for each, mb in figures.items()), flush=True)


if __name__ == "__main__":
    from benchmarks import worker_memory  # workers find its classes by this name

    worker_memory.main()
