"""Which positions the pieces of a backup answer for, and which it admits to lack. Pure.

Zxids jump when an epoch begins. Where it is known what came before, the piece that begins there claims everything from
the end of the one before, so that the claims of a log tile it without holes; where it is not known, and where
transactions are lost, there is a known gap.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from logkeep.formats.zookeeper.names import epoch_of, follows
from logkeep.model.segments import Codec, Proof, Segment
from logkeep.model.segments import Collection as Kind
from logkeep.repository.backups.manifest import KnownGap, LogCut
from logkeep.repository.object_writer import StoredObject
from logkeep.zookeeper.model.archived import ArchivedLog, ArchivedSnapshot
from logkeep.zookeeper.model.sink import DamagedFile, PlacedLog, PlacedSnapshot
from logkeep.zookeeper.repo.record import EnsembleRecord, log_of

DAMAGED = "damaged"
"""The history under which files are kept that are not whole: they stand alone, as snapshots do."""
_LOST = "no file of this member holds them"


@dataclass(frozen=True)
class Claimed:
    segments: list[Segment]
    gaps: list[KnownGap]


def claimed(
    logs: Sequence[PlacedLog], before: int | None, believed: Collection[tuple[int, int]], apart: str = ""
) -> Claimed:
    """Of one member. `before`: the last archived transaction that these pieces continue; None: they are the first.

    `believed`: ends of epochs of which it is known what came behind them. `apart`: the history that tails go under.
    """
    done = Claimed([], [])
    last_apart: int | None = None
    for placed in sorted(logs, key=lambda p: p.kept.first):
        history = apart if placed.tail else placed.kept.history
        previous = last_apart if placed.tail else before
        start = _start(placed, previous, believed)
        if previous is not None and start > previous + 1:
            log = log_of(Kind.TXNLOGS, placed.kept.member, history)
            done.gaps.append(KnownGap(log, previous + 1, start, _reason(previous, placed.kept.first)))
        done.segments.append(_segment(placed, history, start))
        if placed.tail:
            last_apart = placed.kept.last
        else:
            before = placed.kept.last
    return done


def _start(placed: PlacedLog, before: int | None, believed: Collection[tuple[int, int]]) -> int:
    first = placed.kept.first
    if before is None or not follows(before, first):
        return first
    return before + 1 if first == before + 1 or (before, first) in believed else first


def _reason(before: int, first: int) -> str:
    return f"end of epoch {epoch_of(before)} unproven" if follows(before, first) else _LOST


def _segment(placed: PlacedLog, history: str, start: int) -> Segment:
    kept = placed.kept
    return _row(
        placed.stored,
        log=log_of(Kind.TXNLOGS, kept.member, history),
        start=start,
        end=kept.last + 1,
        first=kept.first,
        proof=kept.proof,
        records=kept.records,
        base_time_ms=kept.min_time_ms,
        max_time_ms=kept.max_time_ms,
    )


def snapshot_segment(placed: PlacedSnapshot) -> Segment:
    return _alone(placed.stored, placed.kept.member, placed.kept.history, placed.kept.zxid, placed.kept.nodes)


def damaged_segment(found: DamagedFile) -> Segment:
    return _alone(found.stored, found.member, DAMAGED, found.zxid, 0)


def _alone(stored: StoredObject, member: str, history: str, zxid: int, records: int) -> Segment:
    log = log_of(Kind.SNAPSHOTS, member, history)
    return _row(
        stored,
        log=log,
        start=zxid,
        end=zxid + 1,
        first=zxid,
        proof=Proof.PROVEN,
        records=records,
        base_time_ms=-1,
        max_time_ms=-1,
    )


def _row(stored: StoredObject, **told: object) -> Segment:
    return Segment(
        token=stored.token,
        stored_bytes=stored.size_bytes,
        plain_bytes=stored.plain_bytes,
        sha256=stored.sha256,
        plain_sha256=stored.plain_sha256,
        codec=Codec(stored.codec),
        **told,  # type: ignore[arg-type]  # the two callers above name what is left
    )


def _first_of_all(log: ArchivedLog, _since_ms: int) -> int:
    return log.first


def within(
    logs: Sequence[ArchivedLog],
    snapshots: Sequence[ArchivedSnapshot],
    since_ms: int | None,
    first_since: Callable[[ArchivedLog, int], int] = _first_of_all,
) -> tuple[list[ArchivedLog], list[ArchivedSnapshot]]:
    """Of one member: what is needed to restore every point since a time, and all that there is without one.

    That is the newest snapshot whose window ends before the first transaction of that time, with the log behind it;
    where no snapshot is known to end before it, everything stays. `first_since`: that transaction in a log which begins
    earlier; any transaction before it will do, and keeps more.
    """
    if since_ms is None:
        return list(logs), list(snapshots)
    ends = _ends(logs, snapshots)
    start = _begins([r for r in logs if r.max_time_ms >= since_ms], ends.values(), lambda r: first_since(r, since_ms))
    if start is None:
        start = max((r.last for r in logs), default=0)
    bases = [zxid for zxid, end in ends.items() if end <= start]
    if not bases:
        return list(logs), list(snapshots)
    base = max(bases)
    return [r for r in logs if r.last > base], [s for s in snapshots if s.zxid >= base]


def _ends(logs: Iterable[ArchivedLog], snapshots: Sequence[ArchivedSnapshot]) -> dict[int, int]:
    """Where the windows of snapshots end, by zxid; only of those before which there is something to let go."""
    oldest = min([*(s.zxid + 1 for s in snapshots), *(r.last for r in logs)], default=0)
    told = ((s.zxid, s.bound if s.fuzzy_end is None else s.fuzzy_end) for s in snapshots if s.zxid >= oldest)
    return {zxid: max(end, zxid) for zxid, end in told if end is not None}


def _begins(logs: Iterable[ArchivedLog], ends: Collection[int], first_of: Callable[[ArchivedLog], int]) -> int | None:
    """The first transaction of a time, in logs that have some of it, as far as it matters to these ends of snapshots.

    `first_of` may have to read a log: it is asked only where one ends within it, and none behind the first that counts.
    """
    start: int | None = None
    for log in sorted(logs, key=lambda each: each.first):
        if start is not None and start <= log.first:
            break
        first = first_of(log) if any(log.first < end <= log.last for end in ends) else log.first
        start = first if start is None else min(start, first)
    return start


def cuts(
    logs: Iterable[ArchivedLog], snapshots: Iterable[ArchivedSnapshot], damaged: Iterable[DamagedFile]
) -> list[LogCut]:
    """What a backup covers of each log: the log, the tail and the snapshots of each member."""
    spans: dict[tuple[Kind, str, str], list[tuple[int, int]]] = {}
    for one in logs:
        spans.setdefault((Kind.TXNLOGS, one.member, one.apart or one.history), []).append((one.first, one.last + 1))
    for each in snapshots:
        spans.setdefault((Kind.SNAPSHOTS, each.member, each.history), []).append((each.zxid, each.zxid + 1))
    for file in damaged:
        spans.setdefault((Kind.SNAPSHOTS, file.member, DAMAGED), []).append((file.zxid, file.zxid + 1))
    return [
        LogCut(log_of(kind, member, history), min(a for a, _ in found), max(b for _, b in found))
        for (kind, member, history), found in sorted(spans.items())
    ]


def carried(record: EnsembleRecord | None, history: str) -> tuple[list[ArchivedLog], list[ArchivedSnapshot]]:
    """What the backup before holds of this history: it belongs to the next one too, except for tails."""
    if record is None or record.history != history:
        return [], []
    return [r for r in record.logs if not r.apart], list(record.snapshots)
