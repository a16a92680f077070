"""`logkeep kafka optimize`: the small objects of frequent backups, merged into few."""

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
from logkeep.cli.wiring import chosen_source
from logkeep.config.options import LEASE_TTL, SEGMENT_BYTES
from logkeep.errors import UsageError
from logkeep.repository.backups.source import read_facts
from logkeep.repository.chain.commits import SourceRef


@verb(
    report=OptimizeReport,
    text=optimize_text,
    options=(*WHERE, SEGMENT_BYTES, *HOW),
    exits=EXITS,
    exit_code=optimize_code,
    changes=True,
    examples=("logkeep kafka optimize --dry-run", "logkeep kafka optimize --segment-bytes 1GiB"),
)
def optimize(run: Run) -> OptimizeReport:
    """Merge the small objects of frequent backups into larger ones, for all backups at once.

    Neighbours of one log become one object of at most --segment-bytes, byte for byte, every hash and checksum proven
    on the way. All backups are served by it from then on, also those taken before. The old objects are garbage, which
    `prune` removes after its usual age. `kafka backup --follow` does this by itself, now and then.
    """
    from logkeep.kafka.merge import optimizing  # noqa: PLC0415 - loads Arrow, which --help can spare

    place = _kafka_source(run)
    return optimized(run, place, optimizing(place, run.clock, run.token, run[LEASE_TTL]), run[SEGMENT_BYTES])


def _kafka_source(run: Run) -> SourceRef:
    place = chosen_source(run)
    facts = read_facts(place)
    if facts is not None and facts.kind != "kafka":
        raise UsageError(f"it is a source of kind {facts.kind}, not kafka", subject=place.source)
    return place
