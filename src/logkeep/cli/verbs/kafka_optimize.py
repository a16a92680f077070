"""`logkeep kafka optimize`: the small objects of frequent backups, merged into few."""

import msgspec

from logkeep.cli.look import Look, count, size
from logkeep.cli.opening import STORE_EXITS, chosen_engine, chosen_source
from logkeep.cli.run import Run
from logkeep.cli.verb import verb
from logkeep.config.options import (
    ENGINE,
    LEASE_TTL,
    LIMIT_DOWNLOAD,
    LIMIT_UPLOAD,
    MASTER,
    PARALLEL,
    PROGRESS,
    REPO,
    RETRY_FOR,
    SEGMENT_BYTES,
    SOURCE,
    SPARK_CONF,
)
from logkeep.errors import UsageError
from logkeep.model.findings import Finding
from logkeep.repository.chain import Place
from logkeep.repository.source import read_facts


class KafkaOptimizeReport(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    objects_before: int
    """Small objects that were merged."""
    objects_after: int
    """What they became."""
    size_bytes: int
    findings: tuple[Finding, ...]
    """Objects that were left as they are because they are not what was archived."""
    dry_run: bool


def _text(report: KafkaOptimizeReport, look: Look) -> str:
    if not report.objects_before and not report.findings:
        return look.text(f"nothing to merge in {report.source}")
    done = "would merge" if report.dry_run else "merged"
    lines = [
        f"{done} {count(report.objects_before)} objects of {report.source} into {count(report.objects_after)}, "
        f"{size(report.size_bytes)}",
        *(f"{f.severity.upper():8}{f.where}: {f.what}" for f in report.findings),
    ]
    return look.text("\n".join(lines))


@verb(
    report=KafkaOptimizeReport,
    text=_text,
    options=(
        REPO,
        SOURCE,
        SEGMENT_BYTES,
        ENGINE,
        MASTER,
        PARALLEL,
        SPARK_CONF,
        LIMIT_UPLOAD,
        LIMIT_DOWNLOAD,
        RETRY_FOR,
        LEASE_TTL,
        PROGRESS,
    ),
    exits=(10, 20, 50, *STORE_EXITS),
    exit_code=lambda report: 10 if report.findings else 0,
    changes=True,
    examples=("logkeep kafka optimize --dry-run", "logkeep kafka optimize --segment-bytes 1GiB"),
)
def optimize(run: Run) -> KafkaOptimizeReport:
    """Merge the small objects of frequent backups into larger ones, for all backups at once.

    Neighbours of one log become one object of at most --segment-bytes, byte for byte, every hash and checksum proven
    on the way. All backups are served by it from then on, also those taken before. The old objects are garbage, which
    `prune` removes after its usual age. `kafka backup --follow` does this by itself, now and then.
    """
    from logkeep.kafka.optimize import optimizing  # noqa: PLC0415 - loads Arrow, which --help can spare
    from logkeep.repository.merge_plan import MergeRule  # noqa: PLC0415 - the same

    place = _kafka_source(run)
    task, rule = optimizing(place, run.clock, run.token, run[LEASE_TTL]), MergeRule(run[SEGMENT_BYTES])
    done = task.preview(rule) if run.dry_run else task.run(rule, lambda size_bytes: chosen_engine(run, size_bytes))
    return KafkaOptimizeReport(
        source=place.source,
        objects_before=done.objects_before,
        objects_after=done.objects_after,
        size_bytes=done.size_bytes,
        findings=done.findings,
        dry_run=run.dry_run,
    )


def _kafka_source(run: Run) -> Place:
    place = chosen_source(run)
    facts = read_facts(place)
    if facts is not None and facts.kind != "kafka":
        raise UsageError(f"it is a source of kind {facts.kind}, not kafka", subject=place.source)
    return place
