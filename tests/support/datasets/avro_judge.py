"""Runs Apache's Java library for Avro: see `AvroJudge.java`."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pyspark

_SOURCE = Path(__file__).parents[1] / "java" / "AvroJudge.java"
_JARS = Path(pyspark.__file__).parent / "jars"
_NEEDED = ("avro-1", "jackson-", "snappy-java-", "zstd-jni-", "slf4j-api-", "commons-compress-", "xz-")
WRITTEN_TOPIC, WRITTEN_PARTITION, WRITTEN = "orders", 3, 200


@dataclass(frozen=True)
class AvroJudge:
    classes: Path

    def run(self, *words: str) -> list[str]:
        """The lines that it prints."""
        command = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{self.classes}:{_class_path()}", "AvroJudge", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()


def compiled(place: Path) -> AvroJudge:
    subprocess.run(["javac", "-d", place, "-cp", _class_path(), _SOURCE], check=True, timeout=120)
    return AvroJudge(place)


def written_row(number: int) -> tuple[int, int, bytes | None, bytes, int, list[tuple[bytes, bytes]]]:
    """What the judge writes, as `rows_of` has it."""
    key = None if number % 3 == 0 else b"k%d" % number
    headers = [] if number % 2 == 0 else [(b"h", b"%d" % number)]
    return 10**10 + 2 * number, 0, key, b"v%d" % number, 1_700_000_000_000 - number, headers


def _class_path() -> str:
    return ":".join(str(jar) for jar in _JARS.iterdir() if jar.name.startswith(_NEEDED))
