"""What `logkeep app restore` reports, of a restore to files or to a cluster."""

from collections.abc import Callable

import msgspec

from logkeep.checkpoint.restore.plan import ApplicationRestorePlan, PartitionRestorePlan
from logkeep.cli.terminal.text import TerminalStyle
from logkeep.model.plurals import plural

RUN_AGAIN = "run the same command again: it ends or repeats the restore"


class RestoredPositions(msgspec.Struct, frozen=True, kw_only=True):
    partition: int
    position: int
    """Of the checkpoint: the last record that is restored."""
    snapshot_position: int
    replayed: int
    """Positions that the application replays when it starts."""
    dropped: int | None = None
    """Records of the target after the checkpoint, on a cluster with the markers of transactions; null if the target is
    in another history, or cannot be read."""
    sent_again: int | None = None
    """Messages to other partitions without an acknowledgement at the checkpoint; null between two backups."""
    proven: bool = False
    """Snapshot and events were folded, and gave the state that the backup recorded."""


class ApplicationRestoreReport(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    restore: int | None = None
    """The id for `logkeep receipts show`; null on a dry run."""
    checkpoint: int
    backup: int
    """The backup that has it."""
    history: int
    """The new history of the application."""
    directory: str
    """Empty if it was restored to a cluster."""
    cluster: str | None = None
    """The brokers, if it was restored to a cluster."""
    partitions: tuple[RestoredPositions, ...]
    before: str | None = None
    """Where the old files are."""
    old_topics: tuple[str, ...] = ()
    """Those of the history that was replaced; they stay on the cluster."""
    dry_run: bool


def planned_report(
    source: str,
    plan: ApplicationRestorePlan,
    history: int,
    dropped: Callable[[PartitionRestorePlan], int | None],
    *,
    directory: str = "",
    cluster: str | None = None,
    old_topics: tuple[str, ...] = (),
) -> ApplicationRestoreReport:
    """What a restore to a directory or to a cluster would do."""
    return ApplicationRestoreReport(
        source=source,
        checkpoint=plan.checkpoint,
        backup=plan.backup,
        history=history,
        directory=directory,
        cluster=cluster,
        partitions=tuple(
            RestoredPositions(
                partition=p.partition,
                position=p.position,
                snapshot_position=p.snapshot_position,
                replayed=p.cut_end - max(p.snapshot_position + 1, p.log_start),
                dropped=dropped(p),
                sent_again=p.sent_again,
            )
            for p in plan.partitions
        ),
        old_topics=old_topics,
        dry_run=True,
    )


def restore_text(report: ApplicationRestoreReport, look: TerminalStyle) -> str:
    heads = ("PARTITION", "CHECKPOINT AT", "SNAPSHOT AT", "REPLAYED", "DROPPED", "SENT AGAIN", "STATE")
    table = look.table(heads, [_row(one, report) for one in report.partitions], right=",".join(heads[:-1]))
    done = "would restore" if report.dry_run else f"{look.state('OK')}  restored"
    what = f"checkpoint {report.checkpoint} of {report.source} as history {report.history}"
    lines = [f"{done} {look.text(f'{what} to {report.cluster or report.directory}')}", "", table, ""]
    if report.old_topics:
        topics = ", ".join(report.old_topics)
        lines.append(look.text(f"the old topics are {topics}; delete them when you no longer need them"))
    if report.before:
        lines.append(look.text(f"the old files are in {report.before}; remove them when you no longer need them"))
    if report.restore is not None:
        lines.append(look.text(f"receipt: logkeep receipts show {report.restore}"))
    return "\n".join(lines).rstrip("\n")


def _row(one: RestoredPositions, report: ApplicationRestoreReport) -> tuple[str, ...]:
    counted = ("unknown" if number is None else str(number) for number in (one.dropped, one.sent_again))
    state = "proven" if one.proven else "not compared"
    snapshot = "-" if one.snapshot_position < 0 else str(one.snapshot_position)
    positions = (str(one.partition), str(one.position), snapshot, str(one.replayed))
    return (*positions, *counted, "" if report.dry_run else state)


def losses(planned: ApplicationRestoreReport) -> str:
    """A sentence about what the target loses by the restore; empty if it loses nothing."""
    counts = [one.dropped for one in planned.partitions]
    if None in counts:
        return " The application that is there now is in another history, and will be set aside."
    total = sum(count or 0 for count in counts)
    return f" {plural(total, 'record')} after the checkpoint will be dropped." if total else ""
