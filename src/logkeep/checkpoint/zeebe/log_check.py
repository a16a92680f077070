"""Checks the segments of one copy together: one chain of indexes, terms and positions up to the checkpoint. Pure."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from logkeep.checkpoint.zeebe.findings import BRING_BACK, TRIM, damage
from logkeep.checkpoint.zeebe.segment_task import MISSING_OBJECT, CheckedSegment
from logkeep.formats.zeebe.manifests import CopyManifest
from logkeep.formats.zeebe.records import CheckpointEntry
from logkeep.formats.zeebe.segment_scan import ScanEnd
from logkeep.formats.zeebe.snapshots import parse_snapshot_id
from logkeep.model.findings import Finding, note, warning
from logkeep.model.plurals import plural


def in_order(segments: Sequence[CheckedSegment]) -> list[CheckedSegment]:
    """Used segments by their first index; those that were never used have no place in the log."""
    return sorted((each for each in segments if each.used), key=lambda each: each.first_index)


def check_log(manifest: CopyManifest, where: str, segments: Sequence[CheckedSegment]) -> list[Finding]:
    """Everything that segments say. `where` is the manifest."""
    used = in_order(segments)
    return [
        *(finding for each in segments for finding in _alone(each)),
        *(finding for before, after in pairwise(used) for finding in _neighbours(before, after)),
        *_start(manifest, where, used),
        *_checkpoint(manifest, where, used),
    ]


def from_first_entry(segments: Sequence[CheckedSegment]) -> bool:
    """Whether the log was read completely and nothing was ever compacted."""
    used = in_order(segments)
    return bool(used) and used[0].first_index == 1 and all(each.whole for each in segments)


def _alone(segment: CheckedSegment) -> Iterator[Finding]:
    name, last = segment.name, segment.last_index
    if segment.end == MISSING_OBJECT:
        yield damage("object-missing", name, "the object is missing", BRING_BACK)
        return
    if segment.end in {ScanEnd.DAMAGED, ScanEnd.TORN}:
        after = f", after index {last}" if segment.used else ""
        yield damage("segment-damaged", name, f"byte {segment.used_bytes}{after}: {segment.reason}", BRING_BACK)
        return
    if segment.end == ScanEnd.CUT_OFF:
        what = f"byte {segment.used_bytes}: the frame after index {last} is whole but for its first byte, which is 0"
        yield warning("frame-cut-off", name, what, "if the broker did not cut its log there, the byte is damaged")
    if segment.end == ScanEnd.OLD_BYTES:
        yield note("old-bytes", name, f"byte {segment.used_bytes}: old bytes follow the last frame", TRIM)
    if segment.size < segment.plain_bytes and segment.end == ScanEnd.ZEROS:
        what = f"it has {segment.size} of {segment.plain_bytes} bytes; all that is missing is after its last frame"
        yield note("segment-short", name, what)
    yield from _stated_end(segment)
    if segment.odd_flags:
        counted = plural(segment.odd_flags, "record has flags", "records have flags")
        what = f"{counted} that make Zeebe skip it, the first at position {segment.first_odd}"
        yield damage("skipped-records", name, f"{what}: old bytes were after the end of a restored log", TRIM)
    if segment.unreadable:
        what = f"the value of a record cannot be read, the first at position {segment.first_unreadable}"
        yield damage("value-unreadable", name, what)


def _stated_end(segment: CheckedSegment) -> Iterator[Finding]:
    """A segment that Zeebe has closed names its last frame."""
    stated = (segment.stated_last_index, segment.stated_last_frame_at)
    if stated in {(0, 0), (segment.last_index, segment.last_frame_at)}:
        return
    what = f"it must end with index {stated[0]} at byte {stated[1]}"
    found = f"; its last frame has index {segment.last_index} at byte {segment.last_frame_at}"
    yield damage("segment-end", segment.name, what + found, BRING_BACK)


def _neighbours(before: CheckedSegment, after: CheckedSegment) -> Iterator[Finding]:
    if after.number <= before.number:
        yield damage("segment-order", after.name, f"segment {after.number} follows segment {before.number}")
    if not before.whole:
        return
    if after.first_index != before.last_index + 1:
        what = f"it begins with index {after.first_index}, but {before.name} ends with index {before.last_index}"
        yield damage("index-gap", after.name, what, BRING_BACK)
    elif 0 <= after.first_position != before.last_position + 1 and before.last_position >= 0:
        what = f"it begins with position {after.first_position}, but the one before ends with {before.last_position}"
        yield damage("position-gap", after.name, what)
    if 0 <= after.first_term < before.last_term:
        what = f"it begins with term {after.first_term}, but the one before ends with term {before.last_term}"
        yield damage("term-falls", after.name, what)


def _start(manifest: CopyManifest, where: str, used: Sequence[CheckedSegment]) -> Iterator[Finding]:
    """The log must begin where the snapshot ends, or with its first entry."""
    if not used:
        yield damage("log-missing", where, "no segment has a record")
        return
    first, snapshot = used[0].first_index, parse_snapshot_id(manifest.snapshot_id)
    if snapshot is None and first != 1:
        yield damage("log-start", used[0].name, f"there is no snapshot, and the log begins with index {first}, not 1")
    if snapshot is not None and first > snapshot.index + 1:
        what = f"it begins with index {first}, but snapshot {manifest.snapshot_id} ends with index {snapshot.index}"
        yield damage("log-start", used[0].name, what)


def _checkpoint(manifest: CopyManifest, where: str, used: Sequence[CheckedSegment]) -> Iterator[Finding]:
    """The command that created this checkpoint is at the position, with the id, that the manifest states."""
    number, position = manifest.checkpoint_id, manifest.checkpoint_position
    entries = [(each.name, entry) for each in used for entry in each.checkpoints]
    creates = [(name, entry) for name, entry in entries if entry.is_create]
    if not any(entry.position == position and entry.checkpoint_id == number for _, entry in creates):
        yield damage("checkpoint-missing", where, f"no record at position {position} creates checkpoint {number}")
    for name, entry in creates:
        if entry.checkpoint_id >= number and entry.position < position:
            what = f"position {entry.position} creates checkpoint {entry.checkpoint_id}, before position {position}"
            yield damage("checkpoint-position", name, what)
    for name, entry in entries:
        if _contradicts(entry, number, position):
            what = f"position {entry.position} says that checkpoint {number} is at position {entry.checkpoint_position}"
            yield damage("checkpoint-position", name, what)


def _contradicts(entry: CheckpointEntry, number: int, position: int) -> bool:
    if not entry.is_created or entry.checkpoint_id != number:
        return False
    return position not in (entry.checkpoint_position, entry.source) or entry.checkpoint_position != position
