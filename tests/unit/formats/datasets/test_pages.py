"""The examples on the pages of both formats, run on files of ours."""

import os
import re
import subprocess
import sys
from pathlib import Path

from logkeep.formats.datasets.avro.writer import AvroFileWriter, AvroOptions
from logkeep.formats.datasets.parquet import ParquetFileWriter
from tests.support.kafka.arrow_samples import sample

PAGES = Path(__file__).parents[4] / "docs" / "formats"


def _example(page: str, place: Path) -> str:
    (code,) = re.findall(r"^```python\n(.*?)^```$", (PAGES / page).read_text(), re.M | re.S)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=place, capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_examples_print_the_records(tmp_path: Path) -> None:
    place = tmp_path / "topics" / "orders" / "partition=0"
    place.mkdir(parents=True)
    avro = AvroFileWriter("orders", 0, 0, AvroOptions())
    batch = sample(20, first=0)
    (place / f"orders+0-{0:020}.data").write_bytes(avro.begin() + avro.add(batch) + avro.end())
    parquet = ParquetFileWriter("orders", 0)
    (place / f"orders+0-{0:020}.parquet").write_bytes(parquet.begin() + parquet.add(batch) + parquet.end())
    assert len(_example("avro.md", tmp_path).splitlines()) == 20
    assert _example("parquet.md", tmp_path) == "[(0, 20)]\n"
