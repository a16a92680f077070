"""A small program around the Spark engine, run by the tests as a process of its own.

`python -m tests.integration.spark.engine_program TASK UNITS CACHE TRACES [MASTER [CONF]]` prints one JSON document. The
variable SECRET_FILE names the file of the cluster's secret.
"""

import json
import os
import sys
from contextlib import closing
from pathlib import Path

from logkeep.engine.spark.engine import SparkEngine
from logkeep.engine.spark.jvm.processes import descendants
from logkeep.engine.spark.settings import SparkSettings
from logkeep.errors import LogkeepError
from logkeep.model.secret import Secret
from tests.integration.spark import tasks as spark_tasks


def main(task: str, units: str, cache: str, traces: str, master: str = "local[2]", *conf: str) -> int:
    file = os.environ.get("SECRET_FILE")
    secret = Secret(Path(file).read_text().strip()) if file else None
    settings = SparkSettings(Path(cache), master, dict(pair.split("=", 1) for pair in conf), secret)
    work = [spark_tasks.Unit(number, traces) for number in range(int(units))]
    with closing(SparkEngine(settings)) as engine:
        try:
            answers = engine.map(
                getattr(spark_tasks, task), work, spark_tasks.Answer, label=task, weight=spark_tasks.weight
            )
        except LogkeepError as error:
            print(json.dumps({"error": error.slug(), "what": str(error), "remedy": error.remedy}))
            return error.exit_code
        print(json.dumps({"texts": [answer.text for answer in answers], "pids": [answer.pid for answer in answers],
                          "mapped": _mapped_archives()}))  # fmt: skip
    return 0


def _mapped_archives() -> list[str]:
    """The class archives that a process below this one has mapped into its memory."""
    found = set()
    for process in descendants(os.getpid()):
        maps = Path(f"/proc/{process.pid}/maps").read_text(errors="replace")
        found |= {line.split()[-1] for line in maps.splitlines() if line.endswith(".jsa") and "classes/spark-" in line}
    return sorted(found)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
