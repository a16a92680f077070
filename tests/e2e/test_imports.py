"""Which libraries a command loads: help and small verbs answer at once, and pandas is Spark's alone."""

import json
import sys
from pathlib import Path

from logkeep.cli.frame.catalogue import VERBS
from logkeep.cli.zkbackup.main import COMMANDS
from tests.support.cli.filled_repository import Filled
from tests.support.cli.processes import logkeep
from tests.support.kafka.compacted_backups import CompactedSource
from tests.support.kafka.whole_backups import new_place

HEAVY = ("numpy", "pyarrow", "pandas", "kafka", "numba", "pyspark", "obstore", "boto3")
_CALLS = """
import contextlib, io, json, sys
from logkeep.cli.frame.main import logkeep
from logkeep.cli.zkbackup.main import PROGRAM
heavy, calls = json.loads(sys.argv[1])
programs = {"logkeep": logkeep(), "zkbackup": PROGRAM}
for name, words in calls:
    program = programs[name]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as problems:
        code = program.call(words, program.real_world(words))
    loaded = sorted({module.partition(".")[0] for module in sys.modules} & set(heavy))
    print(json.dumps([name, words, code, loaded, problems.getvalue() if code else ""]))
"""
Call = tuple[str, list[str]]


def loaded_by(calls: list[Call], home: Path, repo: str = "", heavy: tuple[str, ...] = HEAVY) -> dict[str, list[str]]:
    """Calls in one new process, one after the other: each with what was loaded when it ended."""
    program = (sys.executable, "-c", _CALLS)
    done = logkeep(json.dumps([heavy, calls]), home=home, program=program, env={"LOGKEEP_REPO": repo} if repo else {})
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(rows) == len(calls), done.stderr
    failed = [row for row in rows if row[2]]
    assert not failed
    return {" ".join([name, *words]): loaded for name, words, _, loaded, _ in rows}


def test_the_help_of_every_verb_loads_no_heavy_library(tmp_path: Path) -> None:
    calls: list[Call] = [("logkeep", [*entry.words.split(), "--help"]) for entry in VERBS]
    calls += [("zkbackup", [entry.words, "--help"]) for entry in COMMANDS]
    found = loaded_by([*calls, ("logkeep", ["--help"]), ("zkbackup", ["--help"])], tmp_path)
    assert {call: loaded for call, loaded in found.items() if loaded} == {}


def test_verbs_that_read_no_parts_load_no_heavy_library(repo: Filled) -> None:
    held = str(repo.ids[0])
    words = (
        *(["version"], ["list"], ["status"], ["hold", held], ["release", held], ["receipts", "list"], ["unlock"]),
        *(["config", "show"], ["config", "validate"], ["completion", "bash"]),
    )
    found = loaded_by([("logkeep", call) for call in words], repo.home, repo.url)
    assert {call: loaded for call, loaded in found.items() if loaded} == {}


def test_work_in_this_process_does_not_load_pandas(repo: Filled) -> None:
    words = (
        *(["verify"], ["verify", "--level", "data", "--engine", "inline"], ["info", "latest"]),
        *(["delete", str(repo.ids[0]), "--yes"], ["prune", "--keep-last", "2", "--yes"]),
    )
    found = loaded_by([("logkeep", list(call)) for call in words], repo.home, repo.url, ("pandas", "pyarrow"))
    assert set(map(tuple, found.values())) == {("pyarrow",)}


def test_small_verbs_load_no_heavy_library_for_a_kafka_source_either(tmp_path: Path) -> None:
    """`status` reads the cluster record, which is packed."""
    source = CompactedSource(new_place(tmp_path / "repo"), packed=True)
    source.write([(b"k", b"v")])
    source.back_up()
    calls: list[Call] = [("logkeep", [words]) for words in ("list", "status")]
    found = loaded_by(calls, tmp_path, source.place.store.url, (*HEAVY, "msgspec"))
    assert set(map(tuple, found.values())) == {("msgspec",)}
