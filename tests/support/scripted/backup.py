"""Back up the scripted source into a repository, through the same doors that every kind of source uses."""

import hashlib
from collections.abc import Mapping
from datetime import timedelta

import msgspec

from logkeep.model.ids import BackupId
from logkeep.model.ranges import Range
from logkeep.model.segments import Collection, LogName, Segment
from logkeep.model.time import Clock, TokenSource, random_token
from logkeep.model.work import Engine, Progress
from logkeep.repository.backups.backup import FinishedRun, begin, resume
from logkeep.repository.backups.content import PartReader, rows_of, served_parts
from logkeep.repository.backups.journal import UnitReceipt, put_receipt
from logkeep.repository.backups.manifest import LogCut
from logkeep.repository.backups.source import ensure_source, read_manifest
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.fold import BackupEntry, Folded
from logkeep.repository.chain.write_session import Writing, writing
from logkeep.repository.resume import usable_receipts

RECORD = 16
UNIT = 4
"""Records per unit: small, so that a backup makes several objects."""

Ends = Mapping[int, int]
"""How many records each partition holds at the cut."""


def log_of(partition: int) -> LogName:
    return LogName(Collection.TOPICS, "scripted", "history-1", partition)


def record(partition: int, position: int) -> bytes:
    """What stands at a position: the same bytes whenever one asks."""
    return hashlib.sha256(f"{partition}/{position}".encode()).digest()[:RECORD]


def content(partition: int, start: int, end: int) -> bytes:
    return b"".join(record(partition, i) for i in range(start, end))


class CopyUnit(msgspec.Struct, frozen=True):
    place: SourceRef
    backup: int
    run: str
    partition: int
    start: int
    end: int

    @property
    def name(self) -> str:
        return f"{self.partition}-{self.start:020d}-{self.end:020d}"


class Copied(msgspec.Struct, frozen=True):
    segments: list[Segment]


def copy_unit(unit: CopyUnit, progress: Progress) -> Copied:
    """A task: write one object, put the receipt, return the row."""
    segment = write_segment(unit.place, unit.partition, unit.start, unit.end)
    progress(segment.stored_bytes)
    receipt = UnitReceipt(
        repository=unit.place.repository,
        source=unit.place.source,
        id=unit.backup,
        run=unit.run,
        unit=unit.name,
        segments=(segment,),
    )
    put_receipt(unit.place, receipt, random_token())
    return Copied([segment])


def write_segment(place: SourceRef, partition: int, start: int, end: int) -> Segment:
    """Write one object and return its row."""
    data = content(partition, start, end)
    digest = hashlib.sha256(data).hexdigest()
    segment = Segment(
        log=log_of(partition),
        start=start,
        end=end,
        first=start,
        token=random_token(),
        records=end - start,
        stored_bytes=len(data),
        plain_bytes=len(data),
        base_time_ms=-1,
        max_time_ms=-1,
        sha256=digest,
        plain_sha256=digest,
    )
    writer = place.store.open_new(layout.segment(place.source, segment), len(data))
    writer.write(data)
    writer.close()
    return segment


def back_up(
    place: SourceRef,
    ends: Ends,
    engine: Engine,
    clock: Clock,
    tokens: TokenSource,
    *,
    wanted: BackupId | None = None,
    group: tuple[str, ...] = (),
    resumed: bool = False,
    ttl: timedelta = timedelta(minutes=5),
    starts: Ends | None = None,
) -> BackupEntry:
    """One whole backup of the scripted source up to `ends`, from its log starts on."""
    with writing(place, "backup", clock, tokens, ttl) as session:
        facts = ensure_source(place, "scripted", {"id": "s-1"}, clock())
        ongoing = (resume(session, facts) if resumed else None) or begin(session, facts, wanted=wanted, group=group)
        done = usable_receipts(session, ongoing, engine)
        planned = _units(session, place, ongoing.id, ongoing.base, ends)
        units = [u for u in planned if u.name not in done]
        copied = engine.map(copy_unit, units, Copied, label="copy", weight=lambda u: (u.end - u.start) * RECORD)
        taken = [s for u in planned if u.name in done for s in done[u.name].segments]
        new = taken + [s for c in copied for s in c.segments]
        cut = [LogCut(log_of(p), (starts or {}).get(p, 0), end) for p, end in sorted(ends.items())]
        return ongoing.complete(FinishedRun(cut=cut, new=new))


def _units(
    session: Writing, place: SourceRef, backup_id: BackupId, base: BackupEntry | None, ends: Ends
) -> list[CopyUnit]:
    reached = {c.log.partition: c.end for c in read_manifest(place, base).cut} if base else {}
    return [
        CopyUnit(place, backup_id, session.run, partition, start, min(start + UNIT, end))
        for partition, end in sorted(ends.items())
        for start in range(reached.get(partition, 0), end, UNIT)
    ]


def restored(place: SourceRef, backup_id: int, folded: Folded | None = None) -> dict[int, bytes]:
    """Read a backup back, every object checked, and put its logs together; as of now, or of an earlier look."""
    folded = folded or read_chain(place)
    entry = folded.entry(backup_id)
    assert entry is not None, f"backup {backup_id} is not there"
    manifest = read_manifest(place, entry)
    rows = rows_of(PartReader(place), manifest, served_parts(manifest, folded))
    logs: dict[int, bytes] = {c.log.partition: b"" for c in manifest.cut}
    cuts = {c.log.partition: Range(c.start, c.end) for c in manifest.cut}
    for segment in rows.to_segments():
        data = place.store.get(layout.segment(place.source, segment), 1 << 20)
        assert hashlib.sha256(data).hexdigest() == segment.sha256
        logs[segment.log.partition] += _claimed(segment, data, cuts[segment.log.partition])
    return logs


def _claimed(segment: Segment, data: bytes, cut: Range) -> bytes:
    """The records of an object that its row answers for and the backup covers: a merged one may hold more."""
    first, last = max(segment.start, cut.start), min(segment.end, cut.end)
    return data[(first - segment.first) * RECORD : (last - segment.first) * RECORD]


def expected(ends: Ends, starts: Ends | None = None) -> dict[int, bytes]:
    return {p: content(p, (starts or {}).get(p, 0), end) for p, end in ends.items()}
