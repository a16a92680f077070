"""Many small backups of logs made by hand, without a broker: what following a cluster leaves in a repository."""

import hashlib
from collections.abc import Mapping

from logkeep.formats.kafka.batches import WalkEnd, first_broken, walk
from logkeep.model.segments import Collection, LogName, Segment
from logkeep.model.time import Clock, TokenSource, random_token, utc_now
from logkeep.repository.backups.backup import FinishedRun, begin
from logkeep.repository.backups.content import PartReader, rows_of, served_parts
from logkeep.repository.backups.manifest import LogCut
from logkeep.repository.backups.source import ensure_source, read_manifest
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.write_session import writing
from logkeep.repository.segments.writer import SegmentLimits, SegmentWriter
from tests.support.kafka.handmade_batches import dense

Cuts = Mapping[int, tuple[int, int]]
"""By partition: log start and end, even numbers."""
IDENTITY = {"cluster_id": "by-hand"}


def log_of(partition: int) -> LogName:
    return LogName(Collection.TOPICS, "by-hand", "history-1", partition)


def batches_of(partition: int, start: int, end: int) -> list[bytes]:
    """What the source holds: two records to a batch, and every fifth batch was compacted away."""
    return [dense(base, 2, epoch=partition).encode() for base in range(start, end, 2) if base // 2 % 5 != 3]


def take_round(place: SourceRef, cuts: Cuts, clock: Clock = utc_now, tokens: TokenSource = random_token) -> int:
    """One backup that goes on where the last one ended."""
    with writing(place, "backup", clock, tokens) as session:
        ongoing = begin(session, ensure_source(place, "kafka", IDENTITY, clock()))
        base = read_manifest(place, ongoing.base).cut if ongoing.base else ()
        reached = {c.log.partition: c.end for c in base}
        new = [
            segment
            for partition, (start, end) in cuts.items()
            for segment in _copied(place, partition, max(start, reached.get(partition, start)), end, tokens)
        ]
        cut = [LogCut(log_of(p), start, end) for p, (start, end) in sorted(cuts.items())]
        return ongoing.complete(FinishedRun(cut=cut, new=new)).id


def _copied(place: SourceRef, partition: int, start: int, end: int, tokens: TokenSource) -> list[Segment]:
    writer = SegmentWriter(place, log_of(partition), start, SegmentLimits(1 << 20), 0, tokens)
    data = b"".join(batches_of(partition, start, end))
    writer.write(memoryview(data), walk(data).batches)
    writer.finish(end)
    return writer.segments


def read_back(place: SourceRef, backup_id: int, reader: PartReader | None = None) -> dict[int, list[bytes]]:
    """The batches of a backup, every object checked on the way, cut to what the backup covers."""
    folded = read_chain(place)
    entry = folded.entry(backup_id)
    assert entry is not None, f"backup {backup_id} is not there"
    manifest = read_manifest(place, entry)
    cuts = {c.log: c for c in manifest.cut}
    found: dict[int, list[bytes]] = {c.log.partition: [] for c in manifest.cut}
    for row in rows_of(reader or PartReader(place), manifest, served_parts(manifest, folded)).to_segments():
        if row.has_object:
            cut = cuts[row.log]
            low, high = max(row.start, cut.start), min(row.end, cut.end)
            found[row.log.partition] += _within(place, row, low, high)
    return found


def _within(place: SourceRef, row: Segment, low: int, high: int) -> list[bytes]:
    data = place.store.get(layout.segment(place.source, row), 1 << 24)
    assert hashlib.sha256(data).hexdigest() == row.sha256
    walked = walk(data)
    assert walked.stop is WalkEnd.END
    assert first_broken(data, walked.batches) is None
    found = walked.batches
    columns = zip(found.base_offsets, found.last_offsets, found.positions, found.sizes, strict=True)
    return [data[at : at + size] for base, last, at, size in columns if last >= low and base < high]


def expected(cuts: Cuts) -> dict[int, list[bytes]]:
    return {p: batches_of(p, start, end) for p, (start, end) in cuts.items()}


def log_objects(place: SourceRef) -> list[str]:
    return [i.name for i in place.store.list(layout.source_root(place.source)) if i.name.endswith(".log")]
