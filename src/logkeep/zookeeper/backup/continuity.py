"""Checks that a server's directory continues what is archived. The files hold no identity, so records are compared.

The last archived record of the member, or any archived record of another one, must be in its logs with the same
checksum. If no log goes back so far, a snapshot's digest must be the one in the archived record of that transaction, or
its nodes must be those of the archived tree, apart from later changes. Zxids alone prove nothing: after a restore the
same zxids belong to other transactions.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from logkeep.errors import Damaged, HistoryUnproven
from logkeep.formats.zookeeper.compression import opened
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.formats.zookeeper.snapshot import SnapshotReader
from logkeep.zookeeper.backup.server_files import FoundFile, ServerFiles
from logkeep.zookeeper.backup.source_file import OpenedFile, RecordMark, mark_in, same_in
from logkeep.zookeeper.model.sink import Known, MemberReach
from logkeep.zookeeper.timeline.same_ensemble import same_past

CONTRADICTED = "its logs hold another transaction under the zxid of an archived one"
MOST_MARKS = 64
"""Number of archived records that are searched for in the logs of a new member."""


@dataclass(frozen=True)
class Continued:
    """Where a member's log continues: after `kept_to`, which ends at a byte of a file."""

    kept_to: int | None = None
    file: str = ""
    end_at: int = 0
    adler: int = 0
    """The checksum of the record at `kept_to`."""


def check_continuity(member: str, found: ServerFiles, known: Known) -> Continued:
    """Raises HistoryUnproven if nothing in the files proves that they continue the archive."""
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
        if _same_tree(found, known) or _later_tree(found, known, reached.last):
            return Continued(reached.last, adler=reached.adler)
        raise unproven(member, reached.last, "its logs begin after the last archived transaction", known.unreadable())
    mark = mark_in(file.path, reached.last)
    before = _holder(found, file.zxid - 1)
    if before is not None and (mark is None or mark.zxid < reached.last):
        if mark is not None and _contradict(file, before, mark):
            raise unproven(member, mark.zxid, CONTRADICTED)
        mark, file = mark_in(before.path, reached.last), before  # the server may be logging it again in the newer one
    if mark is None or mark.zxid != reached.last:
        raise unproven(member, reached.last, "its logs do not hold the last archived transaction")
    if mark.adler != reached.adler and not _older_log_agrees(file, before, reached):
        raise unproven(member, reached.last, "another transaction has the zxid of the last archived one")
    return Continued(reached.last, file.path.name, mark.end_at, reached.adler)


def _same_tree(found: ServerFiles, known: Known) -> bool:
    """Whether a snapshot has the digest that the archived history had at its transaction."""
    for file in reversed(found.snapshots):
        found_digest = _digest_in(file)
        if found_digest is not None and known.digest_at(found_digest[0]) == found_digest[1]:
            return True
    return False


def _later_tree(found: ServerFiles, known: Known, last: int) -> bool:
    """Whether the oldest undamaged snapshot continues the archive's last tree: then only transactions are lost."""
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
    """The transaction and the digest in an undamaged snapshot."""
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
    """The log that has a transaction, if any."""
    return next((log for log in reversed(found.logs) if log.zxid <= zxid), None)


def _holds(found: ServerFiles, zxid: int, adler: int) -> bool:
    file = _holder(found, zxid)
    mark = mark_in(file.path, zxid) if file is not None else None
    return mark is not None and (mark.zxid, mark.adler) == (zxid, adler)


def _contradict(newer: FoundFile, older: FoundFile, mark: RecordMark) -> bool:
    """Whether a newer and an older log have different transactions under one zxid."""
    earlier = mark_in(older.path, mark.zxid)
    if earlier is None or earlier.zxid != mark.zxid or earlier.adler == mark.adler:
        return False
    return not same_in(mark.zxid, OpenedFile(str(newer.path)), OpenedFile(str(older.path)))


def _older_log_agrees(newer: FoundFile, older: FoundFile | None, reached: MemberReach) -> bool:
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
        remedy="run `logkeep zookeeper repair`, and back up again; if that cannot repair it, pass --new-history",
    )
