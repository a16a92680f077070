"""Kafka's own tool reads the log of an application."""

import os
import re
from pathlib import Path

from logkeep.checkpoint.file_log.file_log import FileLog
from logkeep.checkpoint.records import command
from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.model.cache import cache_dir


def test_kafka_dump_log_reads_every_record_of_the_file_log(tmp_path: Path) -> None:
    log = FileLog(tmp_path / "log", segment_bytes=2_000)
    for number in range(30):
        batch = [command("order", f"key {n}", b"\x82" * n, request=f"r{n}") for n in range(number % 4 + 1)]
        log.append([one.at(-1, 1_700_000_000_000 + number) for one in batch])
    end, files = log.end, sorted((tmp_path / "log").glob("*.log"))
    log.close()
    kafka = EmbeddedKafka(tmp_path / "kafka", cache_dir(os.environ, Path.home()))
    kafka.directory.mkdir()
    tool = "org.apache.kafka.tools.DumpLogSegments"
    said = kafka.java_tool(tool, ["--deep-iteration", "--files", ",".join(map(str, files))])
    assert len(files) == 3
    assert [int(one) for one in re.findall(r"^\| offset: (\d+)", said, re.MULTILINE)] == list(range(end))
    assert said.count("isvalid: true") == 30
    assert "isvalid: false" not in said
    assert said.count("headerKeys: [lk-t,lk-n,lk-r]") == end
