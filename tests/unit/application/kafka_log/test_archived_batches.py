"""Committed records with holes between them become batches that cover every position, for readers of logs in files."""

import random
from pathlib import Path

from logkeep.application.kafka_log.committed_records import archived_batches
from logkeep.checkpoint.file_log.file_log import FileLog
from logkeep.checkpoint.records import CheckpointDocument, Kind, Record, checkpoint, command
from logkeep.formats.plain_batches import walk
from tests.support.processors import ProcessorGroup


def _with_holes(seed: int) -> tuple[list[Record], int]:
    chance = random.Random(seed)
    found: list[Record] = []
    position = chance.choice((0, 0, 3))
    for number in range(60):
        if chance.random() < 0.1:
            document = CheckpointDocument(repository="", application="ab" * 16, history=0, id=number + 1)
            found.append(checkpoint(Kind.CREATE, document).at(position, 1_000 + number))
        else:
            found.append(command("add", f"k{number}", bytes(number)).at(position, 1_000 + number))
        position += 1 + (chance.random() < 0.4) * chance.randrange(1, 4) + (found[-1].kind == Kind.CREATE)
    return found, position


def test_a_log_in_files_reads_the_same_records_at_the_same_positions(tmp_path: Path) -> None:
    for seed in range(40):
        records, end = _with_holes(seed)
        pieces = [records[at : at + 7] for at in range(0, len(records), 7)]
        data = b"".join(archived_batches(pieces, 0, end))
        headers = [header for _, header in walk(data)]
        assert sum(header.size_bytes for header in headers) == len(data)
        assert [header.base_offset for header in headers] == [0, *(header.end_offset for header in headers[:-1])]
        assert headers[-1].end_offset == end
        creates = {one.position + 1 for one in records if one.kind == Kind.CREATE}
        assert creates <= {header.end_offset for header in headers}
        directory = tmp_path / str(seed)
        directory.mkdir()
        (directory / f"{0:020}.log").write_bytes(data)
        log = FileLog(directory)
        assert (log.start, log.end, log.read(0, 1 << 30)) == (0, end, records)
        log.close()


def test_a_range_without_any_record_is_covered_too() -> None:
    (header,) = (header for data in archived_batches([], 5, 9) for _, header in walk(data))
    assert (header.base_offset, header.end_offset) == (5, 9)
    assert list(archived_batches([], 5, 5)) == []


def test_a_log_that_ends_with_a_hole_is_replayed(tmp_path: Path) -> None:
    records = [command("add", "k", b"\x01").at(0, 1_000)]
    for number in range(2):
        (tmp_path / f"p{number}").mkdir()
        (tmp_path / f"p{number}" / f"{0:020}.log").write_bytes(b"".join(archived_batches([records], 0, 1)))
        hole = b"".join(archived_batches([], 1, 3))
        (tmp_path / f"p{number}" / f"{1:020}.log").write_bytes(hole)
    group = ProcessorGroup(tmp_path, {"add": lambda *_: None})
    assert [(log.end, len(log.read(0, 1 << 20))) for log in group.logs] == [(3, 1), (3, 1)]
    assert [processor.step() for processor in group.processors] == [True, True]
