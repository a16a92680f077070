"""`logkeep kafka salvage`: a backup from the disks of brokers that no longer run."""

from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle
from logkeep.cli.verbs.kafka.copied_report import (
    FIRST_SOURCE,
    KafkaCopied,
    copied_code,
    copied_lines,
    copied_metrics,
    gap_text,
)
from logkeep.cli.verbs.kafka.declarations import SALVAGE
from logkeep.cli.verbs.next_steps import after_kafka_copy
from logkeep.cli.wiring import chosen_engine, object_bytes, use_directories, written_source
from logkeep.config.options import (
    ALLOW_GAPS,
    BACKUP_ID,
    EXCLUDE,
    INTERNAL,
    LEASE_TTL,
    LOG_DIRS,
    TAG,
    TOPICS,
)
from logkeep.errors import UsageError
from logkeep.kafka.disks.directories import hold_directories, list_directories, log_dirs
from logkeep.kafka.salvage.findings import LOST
from logkeep.kafka.salvage.plan import SalvageOptions
from logkeep.kafka.salvage.run import KafkaSalvage, SalvageDone
from logkeep.model.ids import backup_id


class KafkaSalvageReport(KafkaCopied, frozen=True, kw_only=True):
    nodes: tuple[int, ...]
    """Brokers whose directories were read."""


def _text(report: KafkaSalvageReport, look: TerminalStyle) -> str:
    nodes = ", ".join(map(str, report.nodes))
    return "\n".join(map(look.prose, copied_lines(report, f" · disks of {nodes}")))


@verb(
    SALVAGE,
    next_step=after_kafka_copy,
    report=KafkaSalvageReport,
    text=_text,
    exit_code=lambda report: copied_code(report, lost=sum(f.code in LOST for f in report.findings)),
    metrics=copied_metrics,
)
def salvage(run: Run) -> KafkaSalvageReport:
    named: tuple[str, ...] = run[LOG_DIRS]
    roots = log_dirs(named)
    if not roots:
        raise UsageError("no directory is given", remedy="pass --log-dirs with what the broker has as log.dirs")
    place = written_source(run, FIRST_SOURCE)
    with hold_directories(roots):
        task, options = KafkaSalvage(place, list_directories(roots), run.clock, run.token), _salvage_options(run)
        use_directories(run, *roots)
        engine = chosen_engine(run, task.size_bytes, work="copy")
        done = task.preview(options, engine) if run.dry_run else task.run(options, engine)
    return _report(place.source, task, done, run[ALLOW_GAPS])


def _salvage_options(run: Run) -> SalvageOptions:
    wanted = run[BACKUP_ID]
    return SalvageOptions(
        include=run[TOPICS],
        exclude=run[EXCLUDE],
        internal=run[INTERNAL],
        wanted_id=backup_id(wanted) if wanted is not None else None,
        tags=run[TAG],
        segment_bytes=object_bytes(run),
        lease_ttl=run[LEASE_TTL],
    )


def _report(source: str, task: KafkaSalvage, done: SalvageDone, allow_gaps: bool) -> KafkaSalvageReport:
    plan, summary = done.plan, done.entry.summary if done.entry else None
    return KafkaSalvageReport(
        source=source,
        id=done.entry.id if done.entry else None,
        cluster_id=task.disks.cluster_id,
        nodes=tuple(sorted(task.disks.nodes)),
        topics=len(plan.facts.topics),
        partitions=len(plan.facts.bounds),
        groups=len(plan.facts.groups),
        open_transactions=len(plan.facts.open_transactions),
        units=len(plan.units),
        new_offsets=done.offsets,
        new_bytes=summary.new_bytes if summary else plan.size_bytes,
        stored_bytes=summary.stored_bytes if summary else None,
        gaps=tuple(map(gap_text, done.gaps)),
        findings=done.findings,
        allow_gaps=allow_gaps,
        dry_run=done.entry is None,
    )
