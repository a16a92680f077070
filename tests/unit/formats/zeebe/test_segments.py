"""Segments of Zeebe's log: every frame, entry and record, and why a scan ended."""

import io
import random

import pytest

from logkeep.errors import Damaged
from logkeep.formats.zeebe import frame_kernels as kernels
from logkeep.formats.zeebe import segment_scan
from logkeep.formats.zeebe.records import MISSING, checkpoints, fields
from logkeep.formats.zeebe.segment_descriptor import (
    SegmentDescriptor,
    named_segment,
    read_descriptor,
    segment_name,
    write_descriptor,
)
from logkeep.formats.zeebe.segment_scan import ScanEnd, SegmentBlock, SegmentScan
from tests.support.both_forms import both_forms
from tests.support.zeebe import handmade
from tests.support.zeebe.handmade import COMMAND, MadeRecord, create, created, frame, frames, raft_entry, segment

BATCHES: tuple[list[MadeRecord], ...] = (
    [],
    [
        MadeRecord(1),
        MadeRecord(2, value={"messageName": "paid", "processInstanceKey": 2 << 51, "list": [1, {"a": -5}]}),
    ],
    [create(3, 20)],
    [created(4, 20, 3), MadeRecord(5, COMMAND, 11, 0, key=7)],
)


def scanned(data: bytes, *, every: bool = True) -> tuple[SegmentScan, list[SegmentBlock]]:
    scan = SegmentScan(io.BytesIO(data).read, every=every)
    return scan, list(scan.blocks())


def test_a_segment_with_zeros_behind_its_last_frame() -> None:
    data = segment(frames(BATCHES), size=4096)
    scan, blocks = scanned(data)
    assert (scan.end, scan.reason) == (ScanEnd.ZEROS, "")
    assert scan.descriptor == SegmentDescriptor(1, 1, 4096, 0, 0)
    assert scan.used_bytes == 57 + sum(map(len, frames(BATCHES)))
    positions = [int(row[kernels.POSITION]) for block in blocks for row in block.rows]
    assert positions == [1, 2, 3, 4, 5]
    assert (scan.fact(kernels.FIRST_INDEX), scan.fact(kernels.LAST_INDEX)) == (1, 4)


def test_only_records_that_checks_need_are_listed() -> None:
    _, blocks = scanned(segment(frames(BATCHES)), every=False)
    assert [int(row[kernels.POSITION]) for block in blocks for row in block.rows] == [3, 4, 5]


def test_checkpoints_say_where_a_copy_may_be_cut() -> None:
    made = frames(BATCHES)
    _, blocks = scanned(segment(made))
    first, second = checkpoints(blocks[0].buffer, blocks[0].base, blocks[0].rows)
    assert (first.is_create, first.position, first.checkpoint_id, first.checkpoint_position) == (True, 3, 20, -1)
    assert first.frame_end == 57 + sum(map(len, made[:3]))
    assert (second.is_created, second.source, second.checkpoint_position) == (True, 3, 3)


def test_fields_of_values_are_read_by_name() -> None:
    _, blocks = scanned(segment(frames(BATCHES)))
    found, wrong = fields(blocks[0].buffer, blocks[0].rows, ("processInstanceKey", "messageName", "id"))
    assert wrong is None
    assert found[1, 0] == 2 << 51
    assert found[1, 1] not in (0, MISSING)
    assert found[:, 2].tolist() == [MISSING, MISSING, 20, 20, MISSING]


@pytest.mark.parametrize(
    "value",
    [{"id": 1}, {"id": -1}, {"id": -40}, {"id": 200}, {"id": 70000}, {"id": 1 << 33}, {"id": -(1 << 62)},
     {"id": 1 << 62}, {"a": b"x" * 300, "id": 3}, {"a": b"x" * 70000, "id": 3}, {"a": "x" * 300, "id": 3},
     {"a": [[[{}]]] * 20, "id": 3},
     {"a": 1.5, "b": None, "c": True, "d": [1] * 70000, "id": 3}, {str(i): i for i in range(300)} | {"id": 3}],
)  # fmt: skip
def test_every_form_of_messagepack_is_skipped_or_read(value: dict[str, object]) -> None:
    _, blocks = scanned(segment(frames([[MadeRecord(1, value=value)]])))
    found, wrong = fields(blocks[0].buffer, blocks[0].rows, ("id",))
    assert (found[0, 0], wrong) == (value["id"], None)


@pytest.mark.parametrize(
    "value", [b"", b"\x81", b"\xdf\xff\xff\xff\xff", b"\x92\x01\x02", b"\x81\xa1", b"\x80\x00", b"\x81\x01\x01"]
)
def test_a_value_that_is_no_map_is_reported(value: bytes) -> None:
    _, blocks = scanned(segment(frames([[MadeRecord(1, value=value)]])))
    assert fields(blocks[0].buffer, blocks[0].rows, ("id",))[1] == 0


def test_frames_are_read_across_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    made = frames([[MadeRecord(position)] for position in range(1, 60)])
    whole, _ = scanned(segment(made, size=20_000))
    monkeypatch.setattr(segment_scan, "BLOCK_BYTES", 100)
    scan, blocks = scanned(segment(made, size=20_000))
    assert len(blocks) > 20
    assert sum(len(block.rows) for block in blocks) == 59
    assert (scan.end, scan.used_bytes, scan.last_frame_at) == (whole.end, whole.used_bytes, whole.last_frame_at)


def test_both_forms_of_the_kernels_agree() -> None:
    data = bytearray(segment(frames(BATCHES), size=4096))
    random.seed(5)
    with both_forms() as compared:
        for _ in range(40):
            changed = bytearray(data)
            changed[random.randrange(57, 1000)] ^= 1 << random.randrange(8)
            _, blocks = scanned(bytes(changed))
            for block in blocks:
                fields(block.buffer, block.rows, ("id", "position"))
    assert {"frame_kernels.walk_frames", "frame_kernels.walk_entries", "value_kernels.read_fields"} <= set(compared)


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        ([frame(1, raft_entry(1)), frame(3, raft_entry(1))], "index"),
        ([frame(1, raft_entry(2)), frame(2, raft_entry(1))], "term"),
        ([frame(1, handmade.batch_entry(1, [MadeRecord(5)]), 4)], "lowest"),
        ([*frames([[MadeRecord(1)]]), *frames([[MadeRecord(3)]], 2)], "position"),
        ([frame(1, handmade.batch_entry(1, [MadeRecord(1), MadeRecord(3)]), 1)], "position"),
        ([frame(1, raft_entry(1, 3))], "entry"),
        ([frame(1, b"")], "entry"),
        ([frame(1, raft_entry(1)), b"\x07" * 40], "unknown byte"),
        ([frame(1, raft_entry(1)), b"\x01" * 40], "header"),
    ],
)
def test_wrong_frames_end_the_scan_with_a_reason(made: list[bytes], reason: str) -> None:
    scan, _ = scanned(segment(made, size=4096))
    assert scan.end is ScanEnd.DAMAGED
    assert reason in scan.reason


def test_how_a_segment_can_end() -> None:
    made = frames(BATCHES)
    whole = segment(made)
    assert scanned(whole)[0].end is ScanEnd.WHOLE
    assert scanned(whole[:-1])[0].end is ScanEnd.TORN
    assert scanned(bytes(4096))[0].end is ScanEnd.UNUSED
    assert scanned(bytes(57) + b"x")[0].end is ScanEnd.DAMAGED
    assert scanned(whole + b"\0" + made[-1][1:])[0].end is ScanEnd.OLD_BYTES
    assert scanned(whole + b"\0" + frame(5, raft_entry(1))[1:])[0].end is ScanEnd.CUT_OFF
    assert scanned(whole + bytes(50) + b"old")[0].end is ScanEnd.OLD_BYTES
    assert scanned(whole[:40])[0].end is ScanEnd.DAMAGED


def test_flags_that_no_healthy_log_has_are_counted() -> None:
    odd = [MadeRecord(1, flags=1, source=5), MadeRecord(2, COMMAND, flags=1), MadeRecord(3, flags=115)]
    scan, _ = scanned(segment(frames([odd])))
    assert (scan.fact(kernels.ODD_FLAGS), scan.fact(kernels.FIRST_ODD)) == (2, 2)


def test_no_bit_of_the_used_bytes_changes_without_notice() -> None:
    data = segment(frames(BATCHES), closed=True)
    for place in range(len(data) * 8):
        changed = bytearray(data)
        changed[place // 8] ^= 1 << place % 8
        scan, _ = scanned(bytes(changed))
        noticed = scan.end is not ScanEnd.WHOLE or scan.descriptor != SegmentDescriptor(
            1, 1, len(data), 4, len(data) - len(frames(BATCHES)[-1])
        )
        assert noticed, place


def test_descriptors_are_written_as_they_are_read() -> None:
    data = handmade.descriptor(3, 70, 4096, 80, 3000)
    found = read_descriptor(data)
    assert found is not None
    assert write_descriptor(found) == data
    with pytest.raises(Damaged):
        read_descriptor(data[:56])
    assert named_segment(segment_name(2, 13)) == (2, 13)
    assert named_segment("raft-partition-partition-2.meta") is None
