"""`logkeep zookeeper optimize`: the small objects of frequent backups, merged into few."""

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

    Neighbours that came from one log file become one object of at most --segment-bytes: the same records, every hash
    and checksum proven on the way. All backups are served by it from then on, also those taken before. The old objects
    are garbage, which `prune` removes after its usual age. `zookeeper backup --follow` does this by itself, now and
    then.
    """
    return optimized(run, ZOOKEEPER, run[ZK_SEGMENT_BYTES])
