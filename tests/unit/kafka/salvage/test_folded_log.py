"""Salvage where the archive of the log was folded: a disk that goes on, and disks that end inside the folded span."""

import base64
from pathlib import Path
from uuid import UUID

import pytest

from logkeep.kafka.client.topology import TopicPartition
from logkeep.repository.chain.commits import read_chain
from tests.support.kafka.broker_disks import made_disk
from tests.support.kafka.compacted_backups import TOPIC_ID, CompactedSource
from tests.support.kafka.salvage_steps import codes, salvaged
from tests.support.kafka.whole_backups import new_place

LOG = TopicPartition("state", 0)
BATCHES = 12


@pytest.fixture
def source(tmp_path: Path) -> CompactedSource:
    """Three backups, and one more batch at the source. Most records of three keys are gone from the archive."""
    made = CompactedSource(new_place(tmp_path / "repository"), packed=True)
    for number in range(BATCHES):
        made.write([(b"k%d" % ((number + n) % 3), b"%d.%d" % (number, n)) for n in range(4)])
        if number % 4 == 3:
            made.back_up()
    (folded,) = made.fold()
    assert folded.outcome is not None
    assert folded.outcome.replaced
    made.write([(b"k0", b"later"), (b"new", b"later")])
    return made


def _disk(root: Path, batches: list[bytes], end: int) -> Path:
    disk = made_disk(root, cluster="by-hand", watermarks={LOG: end})
    log = disk / "state-0"
    log.mkdir()
    topic = base64.urlsafe_b64encode(UUID(TOPIC_ID).bytes).decode().rstrip("=")
    (log / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic}\n")
    (log / f"{0:020d}.log").write_bytes(b"".join(batches))
    return disk


def test_a_disk_continues_a_folded_log(source: CompactedSource, tmp_path: Path) -> None:
    before = source.all_latest()
    newest = source.values(_newest(source))
    _, done = salvaged(source.place, [_disk(tmp_path / "disk", source.logs[0], source.ends[0])])
    assert done.entry is not None
    assert (done.offsets, codes(done) & {"new-history", "past-undecided"}) == (2, set())
    assert source.values(done.entry.id) == newest | {b"k0": b"later", b"new": b"later"}
    assert {which: source.latest(*which) for which in before} == before


def test_a_disk_that_lags_behind_is_no_other_past(source: CompactedSource, tmp_path: Path) -> None:
    """Its last batch is whole in the archive, has lost records there, or is gone; what is archived beyond it stays."""
    before = source.all_latest()
    newest = source.latest(_newest(source))
    for batches in range(1, BATCHES, 2):
        disk = _disk(tmp_path / f"disk-{batches}", source.logs[0][:batches], 4 * batches)
        _, done = salvaged(source.place, [disk])
        assert done.entry is not None
        assert (done.offsets, codes(done) & {"new-history"}) == (0, set()), batches
        assert source.latest(done.entry.id) == newest
    assert {which: source.latest(*which) for which in before} == before
    assert len(read_chain(source.place).folded_logs()) == 1


def _newest(source: CompactedSource) -> int:
    return read_chain(source.place).completed[-1].id
