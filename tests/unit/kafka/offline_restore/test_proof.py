"""The proof sees what a disk or a hand has changed, whatever its checksums say; the note beside it, word for word."""

import os
from pathlib import Path

import msgspec
import pytest

from logkeep.directories.folder import Folder, open_folder
from logkeep.kafka.offline_restore import task
from logkeep.kafka.offline_restore.ownership_note import NOTE, OwnershipNote, RestoredFrom, encoded, read_note
from logkeep.kafka.offline_restore.proof import prove
from logkeep.kafka.offline_restore.staging import put_file
from logkeep.kafka.offline_restore.values import OfflineReport
from logkeep.model.segments import Collection, LogName
from tests.support.kafka.broker_disks import flip
from tests.support.kafka.handmade_batches import Batch
from tests.support.kafka.offline_restore import Backed, archived_as, backed_up, labelled, made_target, offline, tree

FILE = "00000000000000000000.log"
BATCHES = [Batch(n, producer=3, payload=b"payload %d" % n).encode() for n in range(4)]


@pytest.fixture
def backed(tmp_path: Path) -> Backed:
    return backed_up(tmp_path, {"orders-0": BATCHES})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return made_target(tmp_path / "data", ["orders-0"])


def _proof(report: OfflineReport) -> str:
    (log,) = report.logs
    return prove(open_folder(Path(log.directory)), log.files, lambda _: None)


@pytest.mark.parametrize(
    ("batches", "says"),
    [
        ([archived_as(b) for b in BATCHES], ""),
        ([*map(archived_as, BATCHES[:3])], "batches is 3 instead of 4"),
        (
            [*map(archived_as, BATCHES[:3]), archived_as(Batch(3, producer=3, payload=b"PAYLOAD 3").encode())],
            "sha256 is",
        ),
        ([labelled(b, 2**62 + 4) for b in BATCHES], "fingerprint is"),
        ([*map(archived_as, [BATCHES[0], BATCHES[2], BATCHES[1], BATCHES[3]])], "offsets do not rise"),
        ([archived_as(BATCHES[0])[:15] + b"\1" + archived_as(BATCHES[0])[16:]], "leader epoch other than 0"),
        ([archived_as(BATCHES[0])[:-1] + b"!"], "does not have the CRC-32C"),
        ([archived_as(BATCHES[0])[:-1]], "the last batch is cut off"),
    ],
)
def test_what_is_not_the_archived_log(backed: Backed, root: Path, batches: list[bytes], says: str) -> None:
    report = offline(backed.place, backed.backup, [root])
    (root / "orders-0" / FILE).write_bytes(b"".join(batches))
    found = _proof(report)
    assert (says in found) if says else found == ""


def test_a_disk_that_changes_what_was_written(backed: Backed, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the last write and the proof a bit turns over: the old directory stays."""

    def rotting(staged: Folder, name: str, data: bytes, like: os.stat_result) -> None:
        put_file(staged, name, data, like)
        flip(staged.path / FILE, 65)

    monkeypatch.setattr(task, "put_file", rotting)
    before = tree(root)
    report = offline(backed.place, backed.backup, [root])
    assert "do not read back" in report.logs[0].problem
    assert tree(root) == before


GOLDEN = """\
{
 "type": "offline-restore-1",
 "origin": {
  "repository": "r",
  "source": "prod",
  "backup": 7,
  "log": {
   "collection": "topics",
   "name": "orders",
   "history": "00",
   "partition": 0
  },
  "start": 5,
  "end": 9,
  "segment_bytes": 100
 },
 "end": 10,
 "markers": 1,
 "cut_batch": false,
 "emptied": 0,
 "files": []
}
"""


def test_the_note_word_for_word(tmp_path: Path) -> None:
    origin = RestoredFrom("r", "prod", 7, LogName(Collection.TOPICS, "orders", "00", 0), 5, 9, 100)
    note = OwnershipNote(origin=origin, end=10, markers=1, cut_batch=False, emptied=0, files=())
    assert encoded(note).decode() == GOLDEN
    (tmp_path / NOTE).write_text(GOLDEN)
    assert read_note(open_folder(tmp_path)) == note


@pytest.mark.parametrize("text", [b"", b"{}", b"\xff\xfe", GOLDEN.replace('"end": 10', '"end": "x"').encode()])
def test_a_note_that_is_none(tmp_path: Path, text: bytes) -> None:
    (tmp_path / NOTE).write_bytes(text)
    assert read_note(open_folder(tmp_path)) is None


def test_every_file_of_a_report_is_told_with_its_hash(backed: Backed, root: Path) -> None:
    report = offline(backed.place, backed.backup, [root])
    (file,) = report.logs[0].files
    told = msgspec.to_builtins(file)
    assert (told["name"], told["batches"], told["records"], told["last_offset"]) == (FILE, 4, 4, 3)
