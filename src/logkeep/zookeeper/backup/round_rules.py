"""What one round of a backup copies, and whether another one is needed. Pure: values in, values out.

A snapshot under load is fuzzy: it needs the log up to its end. So snapshots come first, then the server is asked how
far it is, then logs are copied up to there; and again, until the newest snapshot's end and the server's word are
reached and the epoch stayed the same meanwhile.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from logkeep.formats.zookeeper.names import counter_of, epoch_of, follows
from logkeep.zookeeper.backup.server_files import FoundFile
from logkeep.zookeeper.model.archived import ArchivedLog, ArchivedSnapshot


@dataclass(frozen=True)
class LogWish:
    """A log file and the byte of its first record that is not kept yet; 0: all of it."""

    file: FoundFile
    start_at: int = 0
    closed: bool = True
    """A later log is there: nothing will be added to it."""


def logs_to_read(logs: Sequence[FoundFile], ends: Mapping[str, int], kept_to: int | None) -> list[LogWish]:
    """Files with something new, by name order. `ends`: how far files were read; `kept_to`: what is archived already.

    A log that another one follows, and that was read after that one was there, has nothing new; reading its last bytes
    again costs nothing, so nobody keeps book about it.
    """
    first = 0
    if kept_to is not None:
        first = max((i for i, log in enumerate(logs) if log.zxid <= kept_to), default=0)
    return [
        LogWish(log, ends.get(log.path.name, 0), closed=index + 1 < len(logs))
        for index, log in enumerate(logs)
        if index >= first
    ]


def proven_by(snapshots: Iterable[ArchivedSnapshot], cap: int | None, *, alone: bool) -> tuple[int, ...]:
    """Per epoch the furthest transaction that is known to be committed: each proves those before it in its epoch only.

    What is in a snapshot was committed, and so was what a server has processed. A server that is alone commits all that
    it logs. The last transactions of an earlier epoch may have been given up by the leader after it.
    """
    known: dict[int, int] = {}
    told = [max(s.zxid, s.digest_zxid, s.fuzzy_end or 0) for s in snapshots]
    for zxid in [*told, *(() if cap is None else (cap,))]:
        known[epoch_of(zxid)] = max(zxid, known.get(epoch_of(zxid), 0))
    if alone and cap is not None:
        known.update({epoch: (epoch << 32) | 0xFFFF_FFFF for epoch in range(epoch_of(cap))})
    return tuple(known.values())


def borders(pieces: Sequence[ArchivedLog], joined: Callable[[ArchivedLog, ArchivedLog], bool]) -> list[ArchivedLog]:
    """Pieces in order of zxid, each with the end of the epoch before it where the two lay side by side on the disk."""
    found: list[ArchivedLog] = []
    for piece in pieces:
        before = found[-1] if found else None
        other_epoch = before is not None and epoch_of(before.last) != epoch_of(piece.first)
        if before is not None and other_epoch and follows(before.last, piece.first) and joined(before, piece):
            found.append(msgspec.structs.replace(piece, borders=((before.last, piece.first),)))
        else:
            found.append(piece)
    return found


def with_bounds(snapshots: Sequence[ArchivedSnapshot], told: Mapping[str, int]) -> dict[str, int | None]:
    """For snapshots that do not say where they end: what the server had reached once they were whole.

    Or where the next one began: a server writes one at a time. `told`: its word, by the name of the snapshot.
    """
    ordered = sorted(snapshots, key=lambda s: s.zxid)
    bounds: dict[str, int | None] = {}
    for at, one in enumerate(ordered):
        later = [other.zxid for other in ordered[at + 1 :] if other.zxid > one.zxid][:1]
        known = [*later, *([told[one.name]] if one.name in told else [])]
        bounds[one.name] = min(known) if known and one.fuzzy_end is None else None
    return bounds


@dataclass(frozen=True)
class MemberProgress:
    """Where one member stands at the end of a round."""

    newest_snapshot: int
    """Of those that are on its disk and kept, now or by an earlier backup."""
    fuzzy_end: int
    """Of the newest one that this backup took; its own zxid where nothing more is known."""
    last: int
    """The last transaction that is kept, in any piece; 0: none."""
    cap: int | None
    """What the server said before logs were copied; None: it could not be asked."""
    cap_after: int | None
    """What it said after that."""
    outrun: bool = False
    """A purge removed transactions behind the newest snapshot before they were seen: a newer snapshot is needed."""


def settled(standing: MemberProgress) -> bool:
    """Whether no further round is needed."""
    whole = standing.fuzzy_end <= standing.newest_snapshot or standing.last >= standing.fuzzy_end
    return whole and reached(standing) and not _other_epoch(standing) and not standing.outrun


def reached(standing: MemberProgress) -> bool:
    """The server's word is in the files. An epoch in which nothing happened yet has a zxid and no transaction."""
    cap = standing.cap
    return cap is None or counter_of(cap) == 0 or max(standing.last, standing.newest_snapshot) >= cap


def _other_epoch(standing: MemberProgress) -> bool:
    if standing.cap is None or standing.cap_after is None:
        return False
    return epoch_of(standing.cap) != epoch_of(standing.cap_after)


@dataclass(frozen=True)
class RoundHole:
    """Transactions `first` to `last` that lie between two pieces and in none."""

    first: int
    last: int


def holes(ranges: Iterable[tuple[int, int]]) -> list[RoundHole]:
    """Between runs of zxids, both ends included. What an epoch lacks at its end cannot be told from its files."""
    found, before = [], None
    for first, last in sorted(ranges):
        if before is not None and first > before and not follows(before, first):
            same_epoch = epoch_of(before) == epoch_of(first)
            found.append(RoundHole(before + 1 if same_epoch else (epoch_of(first) << 32) + 1, first - 1))
        before = max(last, before or 0)
    return found
