"""What does one unit of work cost on top of the work itself, on Spark and inline?

Run on an idle machine: `python benchmarks/engine_overhead.py [UNITS]`.
"""

import os
import sys
import time
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.session_start import Nothing, do_nothing
from logkeep.engine.inline import InlineEngine
from logkeep.engine.spark.engine import SparkEngine
from logkeep.engine.spark.settings import SparkSettings
from logkeep.model.cache import cache_dir
from logkeep.model.work import Engine

CORES = 2


def per_unit_ms(engine: Engine, units: int) -> float:
    """Best of three, after one round that warms up."""
    rounds = []
    for _ in range(4):
        started = time.monotonic()
        engine.map(do_nothing, range(units), Nothing, label="overhead", weight=lambda _unit: 1)
        rounds.append((time.monotonic() - started) / units * 1000)
    return min(rounds[1:])


def main() -> None:
    units = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    inline_ms = per_unit_ms(InlineEngine(), units)
    with closing(SparkEngine(SparkSettings(cache_dir(os.environ, Path.home()), f"local[{CORES}]"))) as engine:
        spark_ms = per_unit_ms(engine, units)
    print(f"| engine, {units} units that do nothing | ms per unit, wall | ms per unit and core |")
    print("|---|---|---|")
    print(f"| Spark, local[{CORES}] | {spark_ms:.2f} | {spark_ms * CORES:.2f} |")
    print(f"| inline | {inline_ms:.4f} | {inline_ms:.4f} |")


if __name__ == "__main__":
    main()
