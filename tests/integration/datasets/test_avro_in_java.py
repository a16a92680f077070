"""Apache's Java library reads our Avro files, with the seed's schema as reader schema too, and we read its files."""

import io
import json
import subprocess
from pathlib import Path

import pyspark
import pytest

from logkeep.formats.datasets.avro.container import AvroCodec
from logkeep.formats.datasets.avro.reader import AvroFile
from logkeep.formats.datasets.avro.schemas import AvroSchema, schema_text
from logkeep.formats.datasets.avro.writer import AvroFileWriter, AvroOptions
from tests.support.kafka.arrow_samples import PARTITION, TOPIC, rows_of, sample
from tests.unit.formats.datasets.avro.test_reader import TRIVADIS

JUDGE = Path(__file__).parents[2] / "support" / "java" / "AvroJudge.java"
JARS = Path(pyspark.__file__).parent / "jars"
NEEDED = ("avro-1", "jackson-", "snappy-java-", "zstd-jni-", "slf4j-api-", "commons-compress-", "xz-")


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compiled once."""
    place = tmp_path_factory.mktemp("judge")
    subprocess.run(["javac", "-d", place, "-cp", _jars(), JUDGE], check=True, timeout=120)
    return place


def _jars() -> str:
    return ":".join(str(jar) for jar in JARS.iterdir() if jar.name.startswith(NEEDED))


def _java(judge: Path, *words: str) -> list[str]:
    command = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{judge}:{_jars()}", "AvroJudge", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def _line(row: tuple[object, ...]) -> str:
    offset, _, key, value, time_ms, headers = row
    assert isinstance(headers, list)
    pairs = sorted((name.decode(), content) for name, content in headers)
    fields = [TOPIC, PARTITION, offset, time_ms, _hex(key), _hex(value), *(f"{n}={_hex(v)}" for n, v in pairs)]
    return " ".join(map(str, fields))


def _hex(data: object) -> str:
    return f"x{data.hex()}" if isinstance(data, bytes) else "null"


def test_java_reads_ours_in_every_codec_with_both_schemas(judge: Path, tmp_path: Path) -> None:
    batch, names = sample(300, plain=True), []
    for schema in AvroSchema:
        for codec in AvroCodec:
            writer = AvroFileWriter(TOPIC, PARTITION, 0, AvroOptions(schema, codec))
            names.append(str(tmp_path / f"{schema}-{codec}.data"))
            Path(names[-1]).write_bytes(writer.begin() + writer.add(batch) + writer.end())
    seed = tmp_path / "seed.avsc"
    seed.write_text(schema_text(AvroSchema.SEED001))
    expected = [_line(row) for row in rows_of([batch])] * len(names)
    assert _java(judge, "read", str(seed), *names) == expected
    assert _java(judge, "read", "", *names) == expected


@pytest.mark.parametrize("layout", ["documented", "real"])
def test_we_read_what_java_writes(judge: Path, tmp_path: Path, layout: str) -> None:
    schema = tmp_path / "schema.avsc"
    schema.write_text(schema_text(AvroSchema.SEED001) if layout == "documented" else json.dumps(TRIVADIS))
    codecs = list(AvroCodec) if layout == "documented" else [AvroCodec.SNAPPY]
    _java(judge, "write", str(tmp_path), str(schema), *codecs)
    for codec in codecs:
        opened = AvroFile(io.BytesIO((tmp_path / f"{codec}.avro").read_bytes()))
        assert rows_of(list(opened.records())) == [_expected(i) for i in range(200)]
        assert (opened.topic, opened.partition, opened.header.label) == ("orders", 3, "")
        assert opened.last_offset() == 10**10 + 2 * 199


def _expected(number: int) -> tuple[object, ...]:
    """What the judge writes."""
    key = None if number % 3 == 0 else b"k%d" % number
    headers = [] if number % 2 == 0 else [(b"h", b"%d" % number)]
    return 10**10 + 2 * number, 0, key, b"v%d" % number, 1_700_000_000_000 - number, headers
