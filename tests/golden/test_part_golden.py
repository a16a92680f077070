"""Parts that earlier versions wrote must be read for ever.

`v1.parquet` was written once and is never written anew; `v1.json` has its rows. A new format adds files beside them.
"""

import io
import json
from pathlib import Path

import msgspec
import pyarrow.parquet as pq

from logkeep.model.segments import Segment
from logkeep.repository.parts import SegmentTable, decode

FILES = Path(__file__).parent / "parts"
ROWS = msgspec.json.decode((FILES / "v1.json").read_bytes(), type=list[Segment])


def test_the_part_of_version_1_is_read() -> None:
    table = decode((FILES / "v1.parquet").read_bytes(), max_rows=len(ROWS))
    assert list(table.to_segments()) == ROWS
    assert table == SegmentTable.from_segments(reversed(ROWS))


def test_any_parquet_reader_reads_a_part() -> None:
    rows = pq.read_table(io.BytesIO((FILES / "v1.parquet").read_bytes())).to_pylist()
    stored = json.loads((FILES / "v1.json").read_bytes())
    assert [row["name"] for row in rows] == [row["log"]["name"] for row in stored]
    assert [row["token"].hex() for row in rows] == [row["token"] for row in stored]
