"""Apache's Java library reads our Avro files, with the seed's schema as reader schema too, and we read its files."""

import io
import json
from pathlib import Path

import pytest

from logkeep.formats.datasets.avro.container import AvroCodec
from logkeep.formats.datasets.avro.reader import AvroFile
from logkeep.formats.datasets.avro.schemas import AvroSchema, schema_text
from logkeep.formats.datasets.avro.writer import AvroFileWriter, AvroOptions
from tests.support.datasets.avro_judge import (
    WRITTEN,
    WRITTEN_PARTITION,
    WRITTEN_TOPIC,
    AvroJudge,
    compiled,
    written_row,
)
from tests.support.kafka.arrow_samples import PARTITION, TOPIC, rows_of, sample
from tests.unit.formats.datasets.avro.test_reader import TRIVADIS


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> AvroJudge:
    """Compiled once."""
    return compiled(tmp_path_factory.mktemp("judge"))


def _line(row: tuple[object, ...]) -> str:
    offset, _, key, value, time_ms, headers = row
    assert isinstance(headers, list)
    pairs = sorted((name.decode(), content) for name, content in headers)
    fields = [TOPIC, PARTITION, offset, time_ms, _hex(key), _hex(value), *(f"{n}={_hex(v)}" for n, v in pairs)]
    return " ".join(map(str, fields))


def _hex(data: object) -> str:
    return f"x{data.hex()}" if isinstance(data, bytes) else "null"


def test_java_reads_ours_in_every_codec_with_both_schemas(judge: AvroJudge, tmp_path: Path) -> None:
    batch, names = sample(300, plain=True), []
    for schema in AvroSchema:
        for codec in AvroCodec:
            writer = AvroFileWriter(TOPIC, PARTITION, 0, AvroOptions(schema, codec))
            names.append(str(tmp_path / f"{schema}-{codec}.data"))
            Path(names[-1]).write_bytes(writer.begin() + writer.add(batch) + writer.end())
    seed = tmp_path / "seed.avsc"
    seed.write_text(schema_text(AvroSchema.SEED001))
    expected = [_line(row) for row in rows_of([batch])] * len(names)
    assert judge.run("read", str(seed), *names) == expected
    assert judge.run("read", "", *names) == expected


@pytest.mark.parametrize("layout", ["documented", "real"])
def test_we_read_what_java_writes(judge: AvroJudge, tmp_path: Path, layout: str) -> None:
    schema = tmp_path / "schema.avsc"
    schema.write_text(schema_text(AvroSchema.SEED001) if layout == "documented" else json.dumps(TRIVADIS))
    codecs = list(AvroCodec) if layout == "documented" else [AvroCodec.SNAPPY]
    judge.run("write", str(tmp_path), str(schema), *codecs)
    for codec in codecs:
        opened = AvroFile(io.BytesIO((tmp_path / f"{codec}.avro").read_bytes()))
        assert rows_of(list(opened.records())) == [written_row(i) for i in range(WRITTEN)]
        assert (opened.topic, opened.partition, opened.header.label) == (WRITTEN_TOPIC, WRITTEN_PARTITION, "")
        assert opened.last_offset() == written_row(WRITTEN - 1)[0]
