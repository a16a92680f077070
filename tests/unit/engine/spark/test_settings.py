"""The engine's decisions, without Spark: settings, cache places, counters, one-line causes."""

import time
from pathlib import Path

import pytest

from logkeep.engine.outcomes import UnitFailed
from logkeep.engine.spark.counters import CounterAddress, CounterReceiver, CounterSender
from logkeep.engine.spark.failures import one_line, start_failure
from logkeep.engine.spark.session import end_patience_s
from logkeep.engine.spark.settings import (
    SparkSettings,
    absolute_paths,
    attempts,
    effective_master,
    is_local,
    session_conf,
    tasks_at_once,
)
from logkeep.model.cache import cache_dir


@pytest.mark.parametrize(
    ("given", "effective", "local", "tries"),
    (
        ("local", "local[1,4]", True, 4),
        ("local[3]", "local[3,4]", True, 4),
        ("local[*]", "local[*,4]", True, 4),
        ("local[2,1]", "local[2,1]", True, 1),
        ("spark://host:7077", "spark://host:7077", False, 4),
        ("local-cluster[2,1,1024]", "local-cluster[2,1,1024]", False, 4),
    ),
)
def test_local_masters_get_retries(given: str, effective: str, local: bool, tries: int) -> None:
    assert effective_master(given) == effective
    assert is_local(given) is local
    assert attempts(SparkSettings(Path("/c"), given)) == tries


@pytest.mark.parametrize(
    ("master", "units", "at_once"),
    (
        ("local", 9, 1),
        ("local[3]", 9, 3),
        ("local[3,1]", 2, 2),
        ("local[*]", 9, 4),
        ("local[*]", 0, 1),
        ("spark://host:7077", 9, 9),
        ("local-cluster[2,1,1024]", 9, 9),
    ),
)
def test_how_many_tasks_share_a_limit(master: str, units: int, at_once: int) -> None:
    assert tasks_at_once(master, units, 4) == at_once


def test_the_users_settings_win_except_where_they_would_be_unsafe() -> None:
    users = {
        "spark.driver.memory": "3g",
        "spark.speculation": "true",
        "spark.driver.extraJavaOptions": "-Da=b",
        "spark.task.maxFailures": "7",
        "spark.authenticate": "false",
    }
    settings = SparkSettings(Path("/c"), "spark://host:1", users)
    conf = session_conf(settings, Path("/tmp/with space"), "token", ["-XX:X=1"], {"spark.authenticate": "true"})
    assert conf["spark.driver.memory"] == "3g"
    assert conf["spark.speculation"] == "false"
    assert conf["spark.authenticate"] == "true"
    assert conf["spark.driver.extraJavaOptions"].endswith("-XX:X=1 -Da=b")
    assert "'-Djava.io.tmpdir=/tmp/with space'" in conf["spark.driver.extraJavaOptions"]
    assert "spark.driver.host" not in conf
    assert attempts(settings) == 7


def test_unix_sockets_are_off_where_their_names_would_be_too_long() -> None:
    def enabled(scratch: str) -> str:
        conf = session_conf(SparkSettings(Path("/c")), Path(scratch), "token", [], {})
        return conf["spark.python.unix.domain.socket.enabled"]

    assert (enabled("/tmp/logkeep-1"), enabled("/tmp/" + "x" * 60)) == ("true", "false")


def test_relative_paths_of_settings_stay_below_the_users_directory() -> None:
    given = {
        "spark.jars": "a.jar,/b.jar,s3a://c/d.jar",
        "spark.archives": "env.tar.gz#env",
        "spark.driver.extraClassPath": "conf:/x",
        "spark.eventLog.dir": "events",
        "spark.executor.memory": "1g",
    }
    assert absolute_paths(given, Path("/work")) == {
        "spark.jars": "/work/a.jar,/b.jar,s3a://c/d.jar",
        "spark.archives": "/work/env.tar.gz#env",
        "spark.driver.extraClassPath": "/work/conf:/x",
        "spark.eventLog.dir": "/work/events",
        "spark.executor.memory": "1g",
    }


@pytest.mark.parametrize(
    ("environ", "expected"),
    (
        ({"LOGKEEP_CACHE_DIR": "/a", "XDG_CACHE_HOME": "/b"}, "/a"),
        ({"XDG_CACHE_HOME": "/b"}, "/b/logkeep"),
        ({"XDG_CACHE_HOME": "relative"}, "/home/u/.cache/logkeep"),
        ({"LOGKEEP_CACHE_DIR": ""}, "/home/u/.cache/logkeep"),
    ),
)
def test_the_cache_directory(environ: dict[str, str], expected: str) -> None:
    assert cache_dir(environ, Path("/home/u")) == Path(expected)


def test_a_jvm_that_records_is_given_time_unless_there_is_none() -> None:
    recording, usual = (end_patience_s(hurry=False, recording=each) for each in (True, False))
    assert recording > usual, "an archive that is never finished costs every run as much again"
    assert end_patience_s(hurry=True, recording=True) == end_patience_s(hurry=True, recording=False) < 2


def _drained(receiver: CounterReceiver, expected: int) -> int:
    deadline = time.monotonic() + 60
    while (total := receiver.drain()) != expected and time.monotonic() < deadline:
        time.sleep(0.01)
    return total


def test_counters_add_up_over_units_and_not_over_attempts() -> None:
    receiver = CounterReceiver("127.0.0.1", b"t" * 16, bind="127.0.0.1")
    for unit, attempt, done_bytes in ((0, 0, 700), (1, 0, 30), (0, 1, 200), (0, 0, 900)):
        sender = CounterSender(receiver.address, unit, attempt, lambda: 0.0)
        sender(done_bytes)
        sender.close()
    assert _drained(receiver, 230) == 230
    assert receiver.failed is None
    receiver.close()


def test_counters_carry_a_failure_and_ignore_strangers() -> None:
    receiver = CounterReceiver("127.0.0.1", b"t" * 16, bind="127.0.0.1")
    stranger = CounterAddress("127.0.0.1", receiver.address.port, b"s" * 16)
    liar = CounterSender(stranger, 5, 0, lambda: 0.0)
    liar(999)
    liar.close(UnitFailed("StoreFull", "lie", "", ""))
    sender = CounterSender(receiver.address, 0, 0, lambda: 0.0)
    sender(10)
    sender.close(UnitFailed("StoreFull", "no space", "disk", "buy one"))
    assert _drained(receiver, 10) == 10
    assert receiver.failed == UnitFailed("StoreFull", "no space", "disk", "buy one")
    receiver.close()


def test_a_driver_that_cannot_be_reached_does_not_disturb_the_work() -> None:
    sender = CounterSender(CounterAddress("no-such-host.invalid", 9, b"t" * 16), 0, 0, lambda: 0.0)
    sender(1)
    sender.close()


@pytest.mark.parametrize(
    ("text", "expected"),
    (
        (
            "Job aborted due to stage failure: Task 0 in stage 0.0 failed 4 times, most recent failure: Lost task 0.3"
            " in stage 0.0 (TID 3) (host 1): org.apache.spark.SparkException: Python worker exited (crashed):\n",
            "Python worker exited (crashed)",
        ),
        ("Traceback (most recent call last):\n  File x\nValueError: boom\n", "ValueError: boom"),
        ("org.apache.spark.SparkException: Job 0 cancelled", "SparkException: Job 0 cancelled"),
        ("", "no message"),
    ),
)
def test_sparks_complaints_become_one_line(text: str, expected: str) -> None:
    assert one_line(text) == expected


def test_a_failed_start_is_explained_by_the_first_complaint() -> None:
    log = ["WARN x", 'Exception in thread "main" org.apache.spark.SparkException: bad master', "\tat y.Exception"]
    assert start_failure(RuntimeError("exited"), log) == "SparkException: bad master"
    assert start_failure(RuntimeError("exited"), []) == "exited"
