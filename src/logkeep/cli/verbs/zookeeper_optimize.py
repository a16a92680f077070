"""`logkeep zookeeper optimize`: the small objects of frequent backups, merged into few."""

from typing import TYPE_CHECKING

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
    SOURCE,
    SPARK_CONF,
    ZK_SEGMENT_BYTES,
)
from logkeep.model.findings import Finding
from logkeep.repository.chain import Place
from logkeep.repository.source import check_source

if TYPE_CHECKING:
    from logkeep.repository.optimize import Optimizing


class ZooKeeperOptimizeReport(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    objects_before: int
    """Small objects that were merged."""
    objects_after: int
    """What they became."""
    size_bytes: int
    findings: tuple[Finding, ...]
    """Objects that were left as they are because they are not what was archived."""
    dry_run: bool


def _text(report: ZooKeeperOptimizeReport, look: Look) -> str:
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
    report=ZooKeeperOptimizeReport,
    text=_text,
    options=(
        REPO,
        SOURCE,
        ZK_SEGMENT_BYTES,
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
    examples=("logkeep zookeeper optimize --dry-run", "logkeep zookeeper optimize --segment-bytes 256MiB"),
)
def optimize(run: Run) -> ZooKeeperOptimizeReport:
    """Merge the small objects of frequent backups into larger ones, for all backups at once.

    Neighbours that came from one log file become one object of at most --segment-bytes: the same records, every hash
    and checksum proven on the way. All backups are served by it from then on, also those taken before. The old objects
    are garbage, which `prune` removes after its usual age. `zookeeper backup --follow` does this by itself, now and
    then.
    """
    from logkeep.repository.merge_plan import MergeRule  # noqa: PLC0415 - loads Arrow, which --help can spare

    place = chosen_source(run)
    check_source(place, "zookeeper", {})
    task, rule = optimizing(run, place), MergeRule(run[ZK_SEGMENT_BYTES])
    done = task.preview(rule) if run.dry_run else task.run(rule, lambda size_bytes: chosen_engine(run, size_bytes))
    return ZooKeeperOptimizeReport(
        source=place.source,
        objects_before=done.objects_before,
        objects_after=done.objects_after,
        size_bytes=done.size_bytes,
        findings=done.findings,
        dry_run=run.dry_run,
    )


def optimizing(run: Run, place: Place) -> "Optimizing":
    from logkeep.repository.optimize import Optimizing  # noqa: PLC0415 - loads Arrow, which --help can spare
    from logkeep.zookeeper.archive.merge import WAY  # noqa: PLC0415 - numba is only needed here

    return Optimizing(place, WAY, run.clock, run.token, run[LEASE_TTL])
