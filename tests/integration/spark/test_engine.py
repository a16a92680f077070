"""The Spark engine on a real local session, shared by all tests of this file."""

import json
import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from socket import socket
from threading import Event

import pytest
from pyspark import SparkContext

from logkeep.engine.spark.engine import SparkEngine
from logkeep.engine.spark.jvm.processes import descendants
from logkeep.engine.spark.settings import SparkSettings
from logkeep.engine.spark.sql.query import Query
from logkeep.engine.spark.sql.query import QueryResult as QueryAnswer
from logkeep.engine.spark.sql.tables import UnitTable
from logkeep.errors import Damaged, StoreBusy, StoreFull, TaskFailed, UsageError
from logkeep.model.cache import cache_dir
from tests.integration.spark import rpc_attack
from tests.integration.spark import tasks as spark_tasks
from tests.integration.spark.tasks import Answer, Unit, weight
from tests.support.late_engine import Promising, auto_engine

pytestmark = pytest.mark.xdist_group("spark")


class RecordingSink:
    """Remembers every call; makes a file once it has seen bytes."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []
        self.seen_file: Path | None = None

    def start(self, label: str, total_bytes: int, total_units: int) -> None:
        self.calls = [("start", label, total_bytes, total_units)]

    def update(self, done_bytes: int, done_units: int, failed_attempts: int) -> None:
        self.calls.append(("update", done_bytes, done_units, failed_attempts))
        if self.seen_file is not None and done_bytes:
            self.seen_file.touch()

    def waiting(self, reason: str) -> None: ...

    def finish(self) -> None:
        self.calls.append(("finish",))


@pytest.fixture(scope="module")
def sink() -> RecordingSink:
    return RecordingSink()


@pytest.fixture(scope="module")
def engine(sink: RecordingSink) -> Iterator[SparkEngine]:
    asked = {"spark.speculation": "true"}
    settings = SparkSettings(cache_dir(os.environ, Path.home()), "local[2]", asked)
    with closing(SparkEngine(settings, sink=sink)) as engine:
        yield engine


def test_results_come_in_the_order_of_the_units(engine: SparkEngine, sink: RecordingSink) -> None:
    units = [Unit(number) for number in (*range(0, 50, 2), *range(1, 50, 2))]
    answers = engine.map(spark_tasks.echo, units, Answer, label="echo", weight=weight)
    assert [answer.text for answer in answers] == [f"unit {unit.number}" for unit in units]
    assert all(answer.pid != os.getpid() for answer in answers)
    assert sink.calls[0] == ("start", "echo", sum(range(50)), 50)
    assert sink.calls[-2:] == [("update", sum(range(50)), 50, 0), ("finish",)]


class _ReadyLater:
    """The running Spark, which is ready for a hand-over when the driver has begun a unit."""

    running = False

    def __init__(self, engine: SparkEngine, begun: Path) -> None:
        self._engine, self._begun = engine, begun
        self.begin, self.at_once, self.run_part = engine.begin, engine.at_once, engine.run_part

    def ready(self, timeout_s: float) -> bool:
        Event().wait(timeout_s)
        return self._begun.exists() and self._engine.ready(timeout_s)


def test_while_the_driver_works_spark_keeps_one_worker_idle(
    engine: SparkEngine, sink: RecordingSink, tmp_path: Path
) -> None:
    traces = tmp_path / "traces"
    traces.mkdir()
    units = [Unit(number, str(traces)) for number in range(10)]
    auto = Promising(auto_engine(_ReadyLater(engine, tmp_path / "begun"), tmp_path, sink=sink))
    answers = auto.map(spark_tasks.wait_for_the_others, units, Answer, label="both", weight=weight)
    assert [answer.text for answer in answers] == [f"unit {number}" for number in range(10)]
    assert answers[9].pid == os.getpid()
    assert len({answer.pid for answer in answers} - {os.getpid()}) == 1, "two at the same time, as promised"
    assert len(list(traces.iterdir())) == 10, "each was begun once"
    assert sink.calls[-2:] == [("update", sum(range(10)), 10, 0), ("finish",)]


def test_no_units_need_no_work(engine: SparkEngine) -> None:
    assert engine.map(spark_tasks.echo, [], Answer, label="nothing", weight=weight) == []


def _is_driver(pid: int) -> bool:
    """Other tests of this process have servers running, in JVMs too."""
    return b"org.apache.spark.deploy" in Path(f"/proc/{pid}/cmdline").read_bytes()


def test_another_user_does_not_reach_java_deserialisation(engine: SparkEngine) -> None:
    engine.map(spark_tasks.echo, [Unit(1)], Answer, label="echo", weight=weight)
    (jvm,) = [each.pid for each in descendants(os.getpid()) if _is_driver(each.pid)]
    ports = rpc_attack.listening_ports(jvm)
    assert len(ports) >= 2, "the driver's RPC and its block manager"
    replies = [rpc_attack.reply_to_another_user(port) for port in ports]
    log = Path(f"/proc/{jvm}/fd/1").read_text()
    assert not [line for line in log.splitlines() if rpc_attack.CLASS in line], "its class was looked for"
    assert not [reply for reply in replies if rpc_attack.CLASS.encode() in reply]
    assert b"no answer" not in replies, "the connection stays open"


def test_the_running_session_is_protected_and_does_not_speculate(engine: SparkEngine) -> None:
    engine.map(spark_tasks.echo, [Unit(1)], Answer, label="echo", weight=weight)
    running = SparkContext.getOrCreate().getConf()
    for key, value in {
        "spark.authenticate": "true",
        "spark.network.crypto.enabled": "true",
        "spark.network.crypto.saslFallback": "false",
        "spark.authenticate.enableSaslEncryption": "false",
        "spark.speculation": "false",
    }.items():
        assert running.get(key) == value, key


def test_a_connection_that_breaks_with_the_jvm_prints_no_traceback(
    engine: SparkEngine, capfd: pytest.CaptureFixture[str]
) -> None:
    engine.map(spark_tasks.echo, [Unit(1)], Answer, label="start", weight=weight)
    context = SparkContext._active_spark_context
    assert context is not None
    with socket() as broken:
        context._accumulatorServer.handle_error(broken, ("127.0.0.1", 1))
    assert capfd.readouterr().err == ""


def test_workers_start_in_a_private_directory_and_import_nothing_from_it(engine: SparkEngine) -> None:
    (answer,) = engine.map(spark_tasks.surroundings, [Unit(1)], Answer, label="where", weight=weight)
    directory, mode, safe, paths = json.loads(answer.text)
    assert (mode, safe) == (0o700, True)
    assert Path(directory).name.startswith("logkeep-")
    assert directory not in paths
    assert "" not in paths


def test_an_exception_is_retried_and_its_bytes_are_counted_once(
    engine: SparkEngine, sink: RecordingSink, tmp_path: Path
) -> None:
    units = [Unit(number, str(tmp_path)) for number in (1, 2)]
    answers = engine.map(spark_tasks.fail_twice, units, Answer, label="retry", weight=weight)
    assert [answer.text for answer in answers] == ["unit 1", "unit 2"]
    assert len(list(tmp_path.glob("1-*"))) == len(list(tmp_path.glob("2-*"))) == 3
    assert sink.calls[-2][1:3] == (2000, 2)
    assert all(call[1] <= 2000 for call in sink.calls if call[0] == "update" and isinstance(call[1], int))


def test_a_killed_worker_is_retried(engine: SparkEngine, tmp_path: Path) -> None:
    answers = engine.map(spark_tasks.die_once, [Unit(1, str(tmp_path))], Answer, label="kill", weight=weight)
    assert answers[0].text == "unit 1"
    assert len(list(tmp_path.iterdir())) == 2


def test_a_foreseen_error_comes_back_as_itself_after_one_attempt(engine: SparkEngine, tmp_path: Path) -> None:
    with pytest.raises(StoreFull) as caught:
        engine.map(spark_tasks.store_full, [Unit(1, str(tmp_path))], Answer, label="full", weight=weight)
    assert (caught.value.what, caught.value.subject, caught.value.remedy) == ("no space left", "object-7", "buy a disk")
    assert len(list(tmp_path.iterdir())) == 1


def test_one_given_up_unit_ends_the_job_without_waiting_for_the_others(engine: SparkEngine, tmp_path: Path) -> None:
    units = [Unit(number, str(tmp_path)) for number in range(10)]
    with pytest.raises(StoreFull):
        engine.map(spark_tasks.store_full_while_others_wait, units, Answer, label="full", weight=weight)


def test_an_error_that_a_retry_may_cure_is_tried_four_times(engine: SparkEngine, tmp_path: Path) -> None:
    with pytest.raises(StoreBusy, match="bucket-1: slow down"):
        engine.map(spark_tasks.store_busy, [Unit(1, str(tmp_path))], Answer, label="busy", weight=weight)
    assert len(list(tmp_path.iterdir())) == 4


def test_any_other_error_becomes_one_line_and_a_log(engine: SparkEngine, tmp_path: Path) -> None:
    with pytest.raises(TaskFailed) as caught:
        engine.map(spark_tasks.divide, [Unit(1, str(tmp_path))], Answer, label="divide", weight=weight)
    assert caught.value.what.startswith("ZeroDivisionError: integer division or modulo by zero (tasks.py:")
    assert "\n" not in str(caught.value)
    log = Path(caught.value.remedy.rpartition("log: ")[2])
    assert "ZeroDivisionError" in log.read_text()
    assert len(list(tmp_path.iterdir())) == 4


def test_a_worker_that_always_dies_fails_with_one_line(engine: SparkEngine) -> None:
    with pytest.raises(TaskFailed) as caught:
        engine.map(spark_tasks.die_always, [Unit(1)], Answer, label="die", weight=weight)
    assert caught.value.what == "Python worker exited unexpectedly (crashed)"


def test_bytes_are_seen_before_the_first_unit_ends(engine: SparkEngine, sink: RecordingSink, tmp_path: Path) -> None:
    sink.seen_file = tmp_path / "seen"
    engine.map(spark_tasks.count_until_told, [Unit(1, str(tmp_path))], Answer, label="count", weight=weight)
    sink.seen_file = None
    assert ("update", 500, 0, 0) in sink.calls


def test_a_query_is_answered_and_what_is_none_is_refused(
    engine: SparkEngine, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    sql = "SELECT unit, sum(square) AS total FROM squares GROUP BY unit ORDER BY unit DESC;"
    table = UnitTable("unit bigint, square bigint", spark_tasks.squares, [Unit(n) for n in (3, 5)])
    asked = Query(sql, {"squares": table}, 10)
    assert engine.query(asked) == QueryAnswer(("unit", "total"), ((5, 30), (3, 5)), more=False)
    few = engine.query(replace(asked, sql="SELECT square FROM squares", most=7))
    assert (len(few.rows), few.more) == (7, True)
    capfd.readouterr()
    for wrong in (
        "SELECT nothing FROM squares",
        "SELECT FROM WHERE",
        "CREATE TABLE t AS SELECT 1",
        f"WITH a AS (SELECT 1) INSERT OVERWRITE DIRECTORY '{tmp_path}/n' USING json TABLE a",
    ):
        with pytest.raises(UsageError, match="Spark cannot answer the query"):
            engine.query(replace(asked, sql=wrong))
    assert capfd.readouterr().err == ""
    assert not list(tmp_path.iterdir())
    with pytest.raises(Damaged, match="not a number to square") as damaged:
        engine.query(replace(asked, tables={"squares": replace(table, units=[Unit(-1)])}))
    assert (damaged.value.subject, damaged.value.remedy) == ("unit -1", "take another")
