"""Which failures of the suite are tried once more: few, with servers, never those that look for a rare fault."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.second_try import AT_MOST, may_be_tried_again, node

_SERVER = "tests/integration/kafka/backup/test_command.py::test_a_plan_is_printed"


@pytest.mark.parametrize(
    ("reported", "name"),
    [
        ("a.py::test", "a.py::test"),
        ("a.py::test@kafka", "a.py::test"),
        ("a.py::test[x@y]@kafka", "a.py::test[x@y]"),
        ("a.py::test[x@y]", "a.py::test[x@y]"),
        ("a.py::test[a]b[c]@zookeeper-admin", "a.py::test[a]b[c]"),
    ],
)
def test_a_test_is_named_without_its_group(reported: str, name: str) -> None:
    assert node(reported) == name


@pytest.mark.parametrize(
    ("failed", "again"),
    [
        ([], False),
        ([_SERVER], True),
        ([f"{_SERVER}{n}" for n in range(AT_MOST)], True),
        ([f"{_SERVER}{n}" for n in range(AT_MOST + 1)], False),
        (["tests/unit/repository/chain/test_fold.py::test_parts"], False),
        (["tests/crash/test_points.py::test_all"], False),
        ([_SERVER, "tests/property/test_ranges.py::test_union"], False),
        (["tests/integration/kafka/backup/test_cut.py::test_sound"], False),
        (["tests/integration/kafka/replay/test_killed.py::test_tasks"], False),
        (["tests/integration/kafka/backup/test_matrix.py::test_exactly_once"], False),
    ],
)
def test_few_with_servers_and_none_that_looks_for_a_rare_fault(failed: list[str], again: bool) -> None:
    assert may_be_tried_again(failed) is again


_DISTURBED = """
from pathlib import Path

def test_passes_alone():
    seen = Path(__file__).with_suffix(".seen")
    first = not seen.exists()
    seen.touch()
    assert not first

def test_never_passes():
    assert False
"""


@pytest.mark.parametrize(
    ("chosen", "strict", "code", "said"),
    [
        ("test_passes_alone", "", 0, "UNSTEADY"),
        ("test_passes_alone", "1", 1, "1 failed"),
        ("test_passes_alone or test_never_passes", "", 1, "1 failed, 1 passed"),
    ],
)
def test_a_second_failure_fails_the_run(tmp_path: Path, chosen: str, strict: str, code: int, said: str) -> None:
    place = tmp_path / "tests" / "integration"
    place.mkdir(parents=True)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (place / "test_disturbed.py").write_text(_DISTURBED)
    here = Path(__file__).parents[2]
    run = subprocess.run(
        [sys.executable, "-m", "tests.second_try", "-p", "no:cacheprovider", "-k", chosen, "tests/integration"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(here), "LOGKEEP_STRICT": strict, "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == code, run.stdout + run.stderr
    assert said in run.stdout
