"""Commands of `logkeep` that share one Spark session: a session of its own takes each of them ten seconds of two cores.

`python -m tests.support.cli.spark_commands CACHE MASTER SECRET_FILE CONF...` reads one command per line, a JSON list of
words, calls the program with the session that it keeps, and prints the exit code and both streams as JSON. The words
`units TASK COUNT DIRECTORY` run a task of the engine's tests in the session and print its answers.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from logkeep.cli.frame.main import call
from logkeep.cli.frame.world import World
from logkeep.cli.terminal.console import standard_console
from logkeep.config.places import NOWHERE
from logkeep.engine.spark.directories import SharedDirectory, remove_sign
from logkeep.engine.spark.engine import SparkEngine
from logkeep.engine.spark.jvm.processes import descendants, kill_all
from logkeep.engine.spark.settings import SparkSettings
from logkeep.model.cache import cache_dir
from logkeep.model.secret import Secret
from tests.integration.spark import tasks
from tests.support.cli.processes import clean_environment


class _KeptEngine(SparkEngine):
    """Of all commands. What one of them named to the workers ends with it."""

    def __init__(self, settings: SparkSettings) -> None:
        self.named: list[SharedDirectory] = []
        super().__init__(settings, directories=self.named)

    def forget_directories(self) -> None:
        for sign in self._signs.values():
            remove_sign(sign)
        self._signs.clear()
        self.named.clear()


def _called(words: list[str], engine: _KeptEngine) -> list[int | str]:
    out, err, environ = StringIO(), StringIO(), dict(os.environ)
    with redirect_stdout(out), redirect_stderr(err):
        world = World(environ, standard_console(environ), lambda _: NOWHERE, json="--json" in words)
        world.spark, world.directories = engine, engine.named
        code = call(words, world)
    engine.forget_directories()
    return [code, out.getvalue(), err.getvalue()]


def _units(engine: _KeptEngine, task: str, count: str, traces: str) -> list[int | str]:
    work = [tasks.Unit(number, traces) for number in range(int(count))]
    answers = engine.map(getattr(tasks, task), work, tasks.Answer, label=task, weight=tasks.weight)
    texts, pids = [answer.text for answer in answers], [answer.pid for answer in answers]
    return [0, json.dumps({"texts": texts, "pids": pids}), ""]


def main(cache: str, master: str, secret_file: str, *conf: str) -> None:
    secret = Secret(Path(secret_file).read_text().strip())
    settings = SparkSettings(Path(cache), master, dict(pair.split("=", 1) for pair in conf), secret)
    with closing(_KeptEngine(settings)) as engine:
        for line in sys.stdin:
            words = json.loads(line)
            answer = _units(engine, *words[1:]) if words[0] == "units" else _called(words, engine)
            print(json.dumps(answer), flush=True)


@dataclass(frozen=True)
class SparkCommands:
    """The running program."""

    process: "subprocess.Popen[str]"

    def run(self, words: Sequence[str]) -> "subprocess.CompletedProcess[str]":
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(words), file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        assert answer, "the program with the session has ended"
        code, out, err = json.loads(answer)
        return subprocess.CompletedProcess(list(words), code, out, err)


@contextmanager
def spark_commands(home: Path, master: str, secret_file: Path, conf: Sequence[str]) -> Iterator[SparkCommands]:
    """The program runs until the block ends."""
    cache = str(cache_dir(os.environ, Path.home()))
    environ = clean_environment(home, LOGKEEP_CACHE_DIR=cache, PYSPARK_PYTHON=sys.executable)
    command = [sys.executable, "-m", "tests.support.cli.spark_commands", cache, master, str(secret_file), *conf]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=home, env=environ, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            yield SparkCommands(process)
            process.communicate(timeout=60)
        finally:
            family = descendants(process.pid)
            process.kill()
            kill_all(family)


if __name__ == "__main__":
    main(*sys.argv[1:])
