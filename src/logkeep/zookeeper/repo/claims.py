"""The positions that the pieces of a backup's logs cover, and its known gaps. Pure.

Zxids jump when an epoch begins. Where the end of the epoch before is known, the first piece of the new epoch covers
everything from that end on, so that the pieces cover the log without holes. Where it is not known, and where
transactions are lost, there is a known gap.
"""

from collections.abc import Collection, Iterable, Sequence
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
"""The history under which damaged files are stored, each on its own, as snapshots are."""
_LOST = "no file of this member holds them"


@dataclass(frozen=True)
class ClaimedPositions:
    segments: list[Segment]
    gaps: list[KnownGap]


def claim_logs(
    logs: Sequence[PlacedLog], before: int | None, believed: Collection[tuple[int, int]], apart: str = ""
) -> ClaimedPositions:
    """Of one member. `before`: the last archived transaction that these pieces continue; None: they are the first.

    `believed`: known ends of epochs, each with the transaction after it. `apart`: the history of tails.
    """
    done = ClaimedPositions([], [])
    last_apart: int | None = None
    for placed in sorted(logs, key=lambda p: p.kept.first):
        history = apart if placed.tail else placed.kept.history
        previous = last_apart if placed.tail else before
        start = _start(placed, previous, believed)
        if previous is not None and start > previous + 1:
            log = log_of(Kind.TXNLOGS, placed.kept.member, history)
            unproven = follows(previous, placed.kept.first)
            reason = f"end of epoch {epoch_of(previous)} unproven" if unproven else _LOST
            done.gaps.append(KnownGap(log, previous + 1, start, reason))
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


def _row(stored: StoredObject, **values: object) -> Segment:
    return Segment(
        token=stored.token,
        stored_bytes=stored.size_bytes,
        plain_bytes=stored.plain_bytes,
        sha256=stored.sha256,
        plain_sha256=stored.plain_sha256,
        codec=Codec(stored.codec),
        **values,  # type: ignore[arg-type]  # the two callers above name the other fields
    )


def log_cuts(
    logs: Iterable[ArchivedLog], snapshots: Iterable[ArchivedSnapshot], damaged: Iterable[DamagedFile]
) -> list[LogCut]:
    """The range of each log that a backup covers: log, tail and snapshots of each member."""
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


def carried_over(record: EnsembleRecord | None, history: str) -> tuple[list[ArchivedLog], list[ArchivedSnapshot]]:
    """The previous backup's pieces and snapshots of this history, which the next one includes too, except tails."""
    if record is None or record.history != history:
        return [], []
    return [r for r in record.logs if not r.apart], list(record.snapshots)
