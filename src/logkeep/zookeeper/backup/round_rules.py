"""What one round of a backup copies, and whether another one is needed. Pure.

A snapshot under load is fuzzy: it needs the log up to its end. So snapshots are copied first, then the server is asked
for its zxid, then logs are copied up to it. This repeats until the logs reach the newest snapshot's end and the
server's zxid, and the epoch has not changed meanwhile.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from logkeep.formats.zookeeper.names import counter_of, epoch_of, follows
from logkeep.zookeeper.backup.server_files import FoundFile
from logkeep.zookeeper.model.archived import ArchivedLog, ArchivedSnapshot


@dataclass(frozen=True)
class LogToRead:
    """A log file and the byte of its first record that is not archived yet; 0: all of it."""

    file: FoundFile
    start_at: int = 0
    closed: bool = True
    """There is a later log: nothing will be added to this one."""


def logs_to_read(logs: Sequence[FoundFile], ends: Mapping[str, int], kept_to: int | None) -> list[LogToRead]:
    """Files that may have something new, by name. `ends`: how far files were read; `kept_to`: what is archived.

    A closed log that was read after the next one appeared has nothing new; reading its last bytes again costs nothing,
    so this is not recorded.
    """
    first = 0
    if kept_to is not None:
        first = max((i for i, log in enumerate(logs) if log.zxid <= kept_to), default=0)
    return [
        LogToRead(log, ends.get(log.path.name, 0), closed=index + 1 < len(logs))
        for index, log in enumerate(logs)
        if index >= first
    ]


def proven_by(snapshots: Iterable[ArchivedSnapshot], cap: int | None, *, alone: bool) -> tuple[int, ...]:
    """Per epoch the last transaction known to be committed: it proves those before it in the same epoch only.

    What is in a snapshot was committed, and so was what a server has processed. A standalone server commits all that it
    logs. The next leader may have discarded the last transactions of an earlier epoch.
    """
    known: dict[int, int] = {}
    committed = [max(s.zxid, s.digest_zxid, s.fuzzy_end or 0) for s in snapshots]
    for zxid in [*committed, *(() if cap is None else (cap,))]:
        known[epoch_of(zxid)] = max(zxid, known.get(epoch_of(zxid), 0))
    if alone and cap is not None:
        known.update({epoch: (epoch << 32) | 0xFFFF_FFFF for epoch in range(epoch_of(cap))})
    return tuple(known.values())


def borders(pieces: Sequence[ArchivedLog], joined: Callable[[ArchivedLog, ArchivedLog], bool]) -> list[ArchivedLog]:
    """Pieces in order of zxid, each with the end of the epoch before it if both were adjacent on the disk."""
    found: list[ArchivedLog] = []
    for piece in pieces:
        before = found[-1] if found else None
        other_epoch = before is not None and epoch_of(before.last) != epoch_of(piece.first)
        if before is not None and other_epoch and follows(before.last, piece.first) and joined(before, piece):
            found.append(msgspec.structs.replace(piece, borders=((before.last, piece.first),)))
        else:
            found.append(piece)
    return found


def with_bounds(snapshots: Sequence[ArchivedSnapshot], reported: Mapping[str, int]) -> dict[str, int | None]:
    """For snapshots that do not say where they end: the server's zxid when they were complete.

    Or where the next one began: a server writes one at a time. `reported`: its zxid, by the name of the snapshot.
    """
    ordered = sorted(snapshots, key=lambda s: s.zxid)
    bounds: dict[str, int | None] = {}
    for at, one in enumerate(ordered):
        later = [other.zxid for other in ordered[at + 1 :] if other.zxid > one.zxid][:1]
        known = [*later, *([reported[one.name]] if one.name in reported else [])]
        bounds[one.name] = min(known) if known and one.fuzzy_end is None else None
    return bounds


@dataclass(frozen=True)
class MemberProgress:
    """How far one member is copied at the end of a round."""

    newest_snapshot: int
    """Of those on its disk that are archived, by this or an earlier backup."""
    fuzzy_end: int
    """Of the newest one that this backup copied; its own zxid if nothing more is known."""
    last: int
    """The last archived transaction, in any piece; 0: none."""
    cap: int | None
    """The server's zxid before logs were copied; None: it could not be asked."""
    cap_after: int | None
    """Its zxid after that."""
    outrun: bool = False
    """A purge removed transactions after the newest snapshot before they were read: a newer snapshot is needed."""


def settled(progress: MemberProgress) -> bool:
    """Whether no further round is needed."""
    whole = progress.fuzzy_end <= progress.newest_snapshot or progress.last >= progress.fuzzy_end
    return whole and reached(progress) and not _other_epoch(progress) and not progress.outrun


def reached(progress: MemberProgress) -> bool:
    """Whether the files reach the server's zxid. A new epoch without transactions has a zxid too."""
    cap = progress.cap
    return cap is None or counter_of(cap) == 0 or max(progress.last, progress.newest_snapshot) >= cap


def _other_epoch(progress: MemberProgress) -> bool:
    if progress.cap is None or progress.cap_after is None:
        return False
    return epoch_of(progress.cap) != epoch_of(progress.cap_after)


@dataclass(frozen=True)
class RoundHole:
    """Transactions `first` to `last` that are between two pieces and in none."""

    first: int
    last: int


def holes(ranges: Iterable[tuple[int, int]]) -> list[RoundHole]:
    """Between runs of zxids, both ends included. What is missing at the end of an epoch cannot be seen here."""
    found, before = [], None
    for first, last in sorted(ranges):
        if before is not None and first > before and not follows(before, first):
            same_epoch = epoch_of(before) == epoch_of(first)
            found.append(RoundHole(before + 1 if same_epoch else (epoch_of(first) << 32) + 1, first - 1))
        before = max(last, before or 0)
    return found
