"""Which positions the pieces of a backup answer for, and which it admits to lack. Pure.

Zxids jump when an epoch begins; the piece that begins there claims everything from the end of the one before, so that
the claims of a log tile it without holes. A real hole is a known gap.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from logkeep.formats.zookeeper.names import follows
from logkeep.model.segments import Collection, Segment
from logkeep.repository.manifest import KnownGap, LogCut
from logkeep.zookeeper.archive.record import EnsembleRecord, LogRecord, SnapshotRecord, log_of
from logkeep.zookeeper.sink import PlacedLog, PlacedSnapshot


@dataclass(frozen=True)
class Claimed:
    segments: list[Segment]
    gaps: list[KnownGap]


def claimed(member: str, history: str, logs: Sequence[PlacedLog], before: int | None, reason: str) -> Claimed:
    """`before`: the last archived transaction that these pieces continue; None: they are the first."""
    done = Claimed([], [])
    log = log_of(Collection.TXNLOGS, member, history)
    for placed in sorted(logs, key=lambda p: p.kept.first):
        first = placed.kept.first
        start = first
        if before is not None and follows(before, first):
            start = before + 1
        elif before is not None:
            done.gaps.append(KnownGap(log, before + 1, first, reason))
        done.segments.append(_segment(placed, start))
        before = placed.kept.last
    return done


def _segment(placed: PlacedLog, start: int) -> Segment:
    kept, stored = placed.kept, placed.stored
    return Segment(
        log=log_of(Collection.TXNLOGS, kept.member, kept.history),
        start=start,
        end=kept.last + 1,
        first=kept.first,
        token=stored.token,
        proof=kept.proof,
        records=kept.records,
        stored_bytes=stored.size_bytes,
        plain_bytes=stored.plain_bytes,
        base_time_ms=kept.min_time_ms,
        max_time_ms=kept.max_time_ms,
        sha256=stored.sha256,
        plain_sha256=stored.plain_sha256,
        codec=stored.codec,
    )


def snapshot_segment(placed: PlacedSnapshot) -> Segment:
    kept, stored = placed.kept, placed.stored
    return Segment(
        log=log_of(Collection.SNAPSHOTS, kept.member, kept.history),
        start=kept.zxid,
        end=kept.zxid + 1,
        first=kept.zxid,
        token=stored.token,
        records=kept.nodes,
        stored_bytes=stored.size_bytes,
        plain_bytes=stored.plain_bytes,
        base_time_ms=-1,
        max_time_ms=-1,
        sha256=stored.sha256,
        plain_sha256=stored.plain_sha256,
        codec=stored.codec,
    )


@dataclass(frozen=True)
class Window:
    """What a backup keeps of one member: snapshots from one zxid on, and logs from another."""

    snapshots_from: int
    logs_from: int


def window(
    snapshots: Sequence[SnapshotRecord], logs: Sequence[LogRecord], oldest_snapshot: int | None, oldest_log: int | None
) -> Window:
    """As far back as the member's own directory goes, and never so that the newest snapshot or its log is left out."""
    newest = max((s.zxid for s in snapshots), default=0)
    snapshots_from = min(newest, newest if oldest_snapshot is None else oldest_snapshot)
    kept = [s.zxid for s in snapshots if s.zxid >= snapshots_from]
    first = min((r.first for r in logs), default=0)
    wanted = [oldest_log if oldest_log is not None else first, *((min(kept) + 1,) if kept else ())]
    return Window(snapshots_from, max(min(wanted), first))


def cuts(
    record_logs: Iterable[LogRecord], snapshots: Iterable[SnapshotRecord], windows: dict[str, Window]
) -> list[LogCut]:
    """One for the log and one for the snapshots of each member and history."""
    found: list[LogCut] = []
    logs, shots = list(record_logs), list(snapshots)
    for member, history in sorted({(r.member, r.history) for r in (*logs, *shots)}):
        ends = [r.last + 1 for r in logs if (r.member, r.history) == (member, history)]
        zxids = [s.zxid for s in shots if (s.member, s.history) == (member, history)]
        if ends:
            start = min(windows[member].logs_from, max(ends))
            found.append(LogCut(log_of(Collection.TXNLOGS, member, history), start, max(ends)))
        if zxids:
            found.append(LogCut(log_of(Collection.SNAPSHOTS, member, history), min(zxids), max(zxids) + 1))
    return found


def carried(record: EnsembleRecord | None, history: str) -> tuple[tuple[LogRecord, ...], tuple[SnapshotRecord, ...]]:
    """What the backup before holds of this history: it belongs to the next one too."""
    if record is None or record.history != history:
        return (), ()
    return record.logs, record.snapshots
