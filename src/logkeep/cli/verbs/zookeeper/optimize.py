"""`logkeep zookeeper optimize`: merge the small objects of frequent backups into larger ones."""

from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.verbs.optimize import (
    EXITS,
    HOW,
    WHERE,
    OptimizeReport,
    optimize_code,
    optimize_text,
    optimized,
)
from logkeep.config.options import ZK_SEGMENT_BYTES
from logkeep.kinds import ZOOKEEPER


@verb(
    report=OptimizeReport,
    text=optimize_text,
    options=(*WHERE, ZK_SEGMENT_BYTES, *HOW),
    exits=EXITS,
    exit_code=optimize_code,
    changes=True,
    examples=("logkeep zookeeper optimize --dry-run", "logkeep zookeeper optimize --segment-bytes 256MiB"),
)
def optimize(run: Run) -> OptimizeReport:
    """Merge the small objects of frequent backups into larger ones, for all backups at once.

    Adjacent objects of one log file become one object of at most --segment-bytes: the same records; every hash and
    checksum is verified. All backups use the new object from then on, also earlier ones. The old objects become
    garbage, which `prune` removes. `zookeeper backup --follow` merges by itself from time to time.
    """
    return optimized(run, ZOOKEEPER, run[ZK_SEGMENT_BYTES])
