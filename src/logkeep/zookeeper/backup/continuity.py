"""Does a server's directory continue what is archived of its ensemble? The files hold no identity: records must tell.

The last archived record of the member, or any archived record of another one, must stand in its logs with the same
checksum; where no log reaches back so far, a snapshot's digest must be the one that an archived record tells for that
transaction, or its nodes must be those of the archived tree as far as nobody touched them since. Positions alone prove
nothing: after a restore the same zxids hold other transactions.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from logkeep.errors import Damaged, HistoryUnproven
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.formats.zookeeper.packed import opened
from logkeep.formats.zookeeper.snapshot import SnapshotReader
from logkeep.zookeeper.backup.server_files import FoundFile, ServerFiles
from logkeep.zookeeper.backup.source_file import OpenedFile, RecordMark, mark_in, same_in
from logkeep.zookeeper.model.sink import Known, MemberReach
from logkeep.zookeeper.timeline.same_ensemble import same_past

CONTRADICTED = "its logs hold another transaction under the zxid of an archived one"
MOST_MARKS = 64
"""So many archived records are looked for in the logs of a member that was never archived."""


@dataclass(frozen=True)
class Continued:
    """Where a member's log goes on: behind `kept_to`, which ends at a byte of a file."""

    kept_to: int | None = None
    file: str = ""
    end_at: int = 0
    adler: int = 0
    """The checksum of the record at `kept_to`."""


def continued(member: str, found: ServerFiles, known: Known) -> Continued:
    """Raises HistoryUnproven when nothing in the files proves that they go on where the archive ends."""
    reached = known.reached.get(member)
    if reached is None:
        shares = any(_holds(found, zxid, adler) for zxid, adler in known.marks[:MOST_MARKS])
        if known.marks and not shares and not _same_tree(found, known):
            raise unproven(
                member, known.marks[0][0], "none of the archived transactions is in its logs", known.unreadable()
            )
        return Continued()
    file = _holder(found, reached.last)
    if file is None:
        if _same_tree(found, known) or _kindred(found, known, reached.last):
            return Continued(reached.last, adler=reached.adler)
        raise unproven(member, reached.last, "its logs begin behind the last archived transaction", known.unreadable())
    mark = mark_in(file.path, reached.last)
    before = _holder(found, file.zxid - 1)
    if before is not None and (mark is None or mark.zxid < reached.last):
        if mark is not None and _contradict(file, before, mark):
            raise unproven(member, mark.zxid, CONTRADICTED)
        mark, file = mark_in(before.path, reached.last), before  # the newer one may be about to log it again
    if mark is None or mark.zxid != reached.last:
        raise unproven(member, reached.last, "its logs do not hold the last archived transaction")
    if mark.adler != reached.adler and not _stands_before(file, before, reached):
        raise unproven(member, reached.last, "another transaction has the zxid of the last archived one")
    return Continued(reached.last, file.path.name, mark.end_at, reached.adler)


def _same_tree(found: ServerFiles, known: Known) -> bool:
    """Whether a snapshot is of the very tree that the archived history had at its transaction."""
    for file in reversed(found.snapshots):
        told = _digest_in(file)
        if told is not None and known.digest_at(told[0]) == told[1]:
            return True
    return False


def _kindred(found: ServerFiles, known: Known, last: int) -> bool:
    """Whether the oldest whole snapshot holds what the archive ends with: then only transactions are lost."""
    tree = known.tree()
    for file in found.snapshots if tree is not None else ():
        try:
            with file.path.open("rb") as stream:
                reader = SnapshotReader(opened(stream, file.name.packing))
                reader.sessions()
                reader.acls()
                same = tree is not None and same_past(tree, reader.nodes(), last, file.zxid)
                if same:
                    reader.ending()
                return same
        except (OSError, Damaged):
            continue
    return False


def _digest_in(file: FoundFile) -> tuple[int, int] | None:
    """The transaction and the digest that a whole snapshot tells."""
    try:
        with file.path.open("rb") as stream:
            reader = SnapshotReader(opened(stream, file.name.packing))
            reader.sessions()
            reader.acls()
            for _ in reader.nodes():
                pass
            ending = reader.ending()
    except (OSError, Damaged):
        return None
    return (ending.digest_zxid, ending.digest) if ending.digest is not None else None


def _holder(found: ServerFiles, zxid: int) -> FoundFile | None:
    """The log in which a transaction is, if any has it."""
    return next((log for log in reversed(found.logs) if log.zxid <= zxid), None)


def _holds(found: ServerFiles, zxid: int, adler: int) -> bool:
    file = _holder(found, zxid)
    mark = mark_in(file.path, zxid) if file is not None else None
    return mark is not None and (mark.zxid, mark.adler) == (zxid, adler)


def _contradict(newer: FoundFile, older: FoundFile, mark: RecordMark) -> bool:
    """Whether a record of a newer log is another one than an older log has under its zxid."""
    witness = mark_in(older.path, mark.zxid)
    if witness is None or witness.zxid != mark.zxid or witness.adler == mark.adler:
        return False
    return not same_in(mark.zxid, OpenedFile(str(newer.path)), OpenedFile(str(older.path)))


def _stands_before(newer: FoundFile, older: FoundFile | None, reached: MemberReach) -> bool:
    """Whether an older log has the archived record, and the newer one the same transaction in other bytes."""
    mark = mark_in(older.path, reached.last) if older is not None else None
    if older is None or mark is None or (mark.zxid, mark.adler) != (reached.last, reached.adler):
        return False
    return same_in(reached.last, OpenedFile(str(newer.path)), OpenedFile(str(older.path)))


def unproven(member: str, zxid: int, why: str, damaged: Sequence[str] = ()) -> HistoryUnproven:
    """`damaged`: archived objects that might have proven it."""
    what = f"{why} ({hex_zxid(zxid)})"
    if not damaged:
        return HistoryUnproven(what, subject=f"member {member}")
    names = ", ".join(dict.fromkeys(damaged))
    return HistoryUnproven(
        f"{what}, and what may prove it is damaged in the archive: {names}",
        subject=f"member {member}",
        remedy="run `logkeep zookeeper repair`, and back up again; where that cannot mend it, pass --new-history",
    )
