"""An earlier release that keeps running while this one buries: it ends with 43, and brings no deleted key back.

    python -m tests.integration.kafka.restore.earlier_release TREE

TREE is a source tree of the earlier release, whose packages are those of this environment. It makes the repository,
follows the cluster and restores. Its follower and its restore are stopped by a signal, this release takes a backup that
compares and buries, and both are continued. Prints one line for each statement, and ends with 1 if one does not hold.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.model.cache import cache_dir
from logkeep.repository.access import open_repository
from logkeep.repository.chain.commits import read_chain
from logkeep.repository.restores import list_restores
from logkeep.store.local.store import LocalStore
from tests.support.kafka.archived_tables import archived_table
from tests.support.kafka.cleaned_topics import CleanedTopic, latest
from tests.support.kafka.client_view_of_configs import topic_names
from tests.support.kafka.topic_matrix import BROKER, Matrix
from tests.support.processes import wait_for

TOO_NEW = 43
WHOLE = {b"k%d" % n: b"value %d" % n + b"." * 500 for n in range(400)}
GONE = (b"k2", b"k5")
LEFT = {key: value for key, value in WHOLE.items() if key not in GONE}


class Release:
    """The command of one source tree."""

    def __init__(self, tree: Path, home: Path) -> None:
        self._home = home
        self._environment = {
            **{name: os.environ[name] for name in ("PATH",)},
            "PYTHONPATH": str(tree / "src"),
            "HOME": str(home),
            "LOGKEEP_REPO": f"file://{home / 'repo'}",
            "LOGKEEP_CACHE_DIR": str(cache_dir(os.environ, Path.home())),
        }

    def start(self, *words: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", "logkeep.cli", *words],
            env=self._environment,
            cwd=self._home,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def run(self, *words: str) -> tuple[int, str]:
        with self.start(*words) as process:
            said = process.communicate(timeout=300)[0]
        return process.returncode, said


class Statements:
    def __init__(self) -> None:
        self.wrong = 0

    def __call__(self, what: str, good: bool, said: object = "") -> None:
        self.wrong += not good
        print(f"{'OK  ' if good else 'FAIL'}  {what}{'' if good else f': {said}'}", flush=True)


def main(tree: Path) -> int:
    state = Statements()
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cache = cache_dir(os.environ, Path.home())
        source, target = (
            stack.enter_context(EmbeddedKafka(home / name, cache, properties=BROKER)) for name in ("from", "to")
        )
        ours, earlier = Release(Path(__file__).parents[4], home), Release(tree, home)
        _judge(state, source, target, ours, earlier, home, stack)
    return int(state.wrong > 0)


def _judge(
    state: Statements,
    source: EmbeddedKafka,
    target: EmbeddedKafka,
    ours: Release,
    earlier: Release,
    home: Path,
    stack: ExitStack,
) -> None:
    topic = CleanedTopic(Matrix(source), source.bootstrap, "users")
    topic.put(WHOLE)
    topic.tick()
    where = ("--bootstrap-servers", source.bootstrap, "--source", "prod", "--topics", "users")
    to = ("--bootstrap-servers", target.bootstrap, "--source", "prod", "--yes", "--engine", "inline")
    assert earlier.run("init")[0] == 0
    follower = _stopped_at(
        earlier.start("kafka", "backup", *where, "--follow", "--interval", "1s"), lambda: len(_ids(home)) == 1, stack
    )
    (first,) = _ids(home)
    slow = ("--rename", "s/^/slow-/", "--limit-produce", "20KiB")
    restore = _stopped_at(
        earlier.start("kafka", "restore", first, *to, *slow), lambda: "slow-users" in topic_names(target), stack
    )
    killed = _stopped_at(
        earlier.start("kafka", "restore", first, *to, "--rename", "s/^/killed-/", "--limit-produce", "20KiB"),
        lambda: "killed-users" in topic_names(target),
        stack,
    )
    topic.delete(*GONE)
    topic.without(*GONE)
    topic.tick()
    code, said = ours.run("kafka", "backup", *where, "--json")
    state("this release compares, buries and commits", code == 0 and len(_ids(home)) == 2, said)
    topic.tick()
    code, said = _continued(follower)
    state("the follower of the earlier release ends with 43", code == TOO_NEW, (code, said))
    state("it committed nothing", len(_ids(home)) == 2)
    code, said = _continued(restore)
    there = latest(target.bootstrap, "slow-users")
    state(
        "its restore of the first backup ends with 43, or has all that was there at that cut",
        code == TOO_NEW or (code == 0 and there == WHOLE),
        (code, len(there), said),
    )
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait(60)
    place = open_repository(LocalStore(home / "repo")).place("prod")
    restore_id = list_restores(place)[-1].id
    code, said = earlier.run("kafka", "restore", "--resume", str(restore_id), *to)
    state("its --resume ends with 43", code == TOO_NEW, (code, said))
    code, said = earlier.run("kafka", "restore", "latest", *to, "--rename", "s/^/late-/")
    state("its new restore ends with 43", code == TOO_NEW, (code, said))
    state("and creates no topic", not {t for t in topic_names(target) if t.startswith("late-")})
    code, said = earlier.run("kafka", "backup", *where, "--resume")
    state("its new backup ends with 43", code == TOO_NEW, (code, said))
    before, after = read_chain(place).completed
    state("the first backup is as it was", archived_table(place, before) == WHOLE)
    state("the second one is without the deleted keys", archived_table(place, after) == LEFT)
    code, said = ours.run("kafka", "restore", "latest", *to, "--rename", "s/^/ours-/", "--json")
    good = code == 0 and json.loads(said)["verdict"] == "proven"
    state("this release restores it", good and latest(target.bootstrap, "ours-users") == LEFT, said)


def _stopped_at(
    process: "subprocess.Popen[str]", when: Callable[[], bool], stack: ExitStack
) -> "subprocess.Popen[str]":
    stack.callback(process.kill)
    wait_for(when, "the earlier release")
    os.kill(process.pid, signal.SIGSTOP)
    return process


def _continued(process: "subprocess.Popen[str]") -> tuple[int, str]:
    os.kill(process.pid, signal.SIGCONT)
    said = process.communicate(timeout=300)[0]
    return process.returncode, said


def _ids(home: Path) -> list[str]:
    """Of the backups that are there."""
    return [str(e.id) for e in read_chain(open_repository(LocalStore(home / "repo")).place("prod")).completed]


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
