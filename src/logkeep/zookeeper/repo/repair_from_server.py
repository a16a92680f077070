"""What a backup does about damaged objects of earlier ones: repair them from the server, or report them. Pure."""

from collections.abc import Iterator, Sequence

from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.model.findings import Finding, Severity
from logkeep.zookeeper.model.archived import ArchivedLog
from logkeep.zookeeper.model.sink import CopiedAgain
from logkeep.zookeeper.repo.repair_commit import ObjectRepair, same_bytes
from logkeep.zookeeper.repo.view import ArchiveView
from logkeep.zookeeper.timeline.object_check import named


def repairs_from_server(view: ArchiveView, again: Sequence[CopiedAgain]) -> Iterator[tuple[CopiedAgain, ObjectRepair]]:
    for one in again:
        row = view.row_of(one.kept)
        new = same_bytes(row, one.stored)
        if new is not None:
            yield one, ObjectRepair(row, (new,), f"{named(one.kept)}: copied again from the server, byte for byte")


def copied_again(one: CopiedAgain, original: str) -> Finding:
    kept = one.kept
    held = f", {hex_zxid(kept.first)} to {hex_zxid(kept.last)}," if isinstance(kept, ArchivedLog) else ""
    return Finding(
        code="copied-again",
        severity=Severity.WARNING,
        where=original,
        what=f"{named(kept)}{held} was found damaged; the server still has the same bytes: they were copied again, "
        "also for earlier backups, and nothing is lost; the damaged object stays until those are pruned",
        remedy="run `logkeep verify` on the earlier backups: their verdicts stay as they are until then",
    )


def rests_on(damaged: Sequence[str]) -> Iterator[Finding]:
    """A backup cannot be relied on if it needs an object of an earlier one that a verification found damaged."""
    if damaged:
        more = f" and {len(damaged) - 1} more" if len(damaged) > 1 else ""
        yield Finding(
            code="rests-on-damage",
            severity=Severity.DAMAGE,
            where=damaged[0],
            what=f"this backup needs it{more}, and a verification has found it damaged; it was not copied again from a "
            "server",
            remedy="run `logkeep zookeeper repair`, which copies what is lost from another member or backup, or from a "
            "server's directories (--data-dir); or back up once with --new-history",
        )
