"""`spark.read.format("logkeep")` as a user's own program calls it."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.kafka.table_logs import all_rows, back_up_tables
from tests.support.processes import PATIENCE_S, program

pytestmark = pytest.mark.xdist_group("spark")


def _said(tmp_path: Path, *words: str) -> dict[str, Any]:
    arguments = ["tests.integration.spark.table_program", *words]
    with program(arguments, tmp_path, true_start=True, PYSPARK_PYTHON=sys.executable) as run:
        output, errors = run.communicate(timeout=PATIENCE_S)
    assert run.returncode == 0, errors
    answer: dict[str, Any] = json.loads(output.splitlines()[-1])
    return answer


@pytest.mark.soak
def test_a_plain_session_has_the_format(tmp_path: Path) -> None:
    """The guide has a plain session too: this one is asked for more."""
    backed = back_up_tables(tmp_path / "backed")
    said = _said(tmp_path, backed.place.store.url)
    assert said["types"] == [
        ["key", "binary"],
        ["value", "binary"],
        ["topic", "string"],
        ["partition", "int"],
        ["offset", "bigint"],
        ["timestamp", "timestamp"],
        ["timestampType", "int"],
    ]
    orders = all_rows("orders")
    assert said["records"] == len(orders)
    assert said["window"] == [r.offset for r in orders if r.partition == 1 and 100 <= r.offset <= 110]
    assert said["view"] == 20
    assert said["columns"] == ["offset", "headers"]
    assert "there is no topic 'oders' in the backup\nremedy: the nearest are: orders" in said["wrong"]
    assert "did you mean startingOffsets" in said["unknown"]
