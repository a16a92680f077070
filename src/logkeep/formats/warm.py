"""Compiles and stores every kernel before parallel processes need them."""

from logkeep.formats.compare import digest, log_compare
from logkeep.formats.datasets.arrow import arrow_records
from logkeep.formats.kafka.batches import APPEND_TIME, BatchStretch, walk
from logkeep.formats.kafka.merge_batches import BatchMergeRule, merged
from logkeep.formats.kafka.outgoing import Outgoing, outgoing, stamp
from logkeep.formats.kafka.partitioner import Share
from logkeep.formats.kafka.record_view import View, visible_records
from logkeep.formats.kafka.regroup import regrouped
from logkeep.formats.kafka.synthetic_batches import filler_batches


def warm() -> None:
    """Call every kernel with the argument types that are used elsewhere: numba compiles per type."""
    digest.warm()
    log_compare.warm()
    batches = walk(digest.SMALLEST).batches
    batches.headers["attributes"] |= APPEND_TIME  # so that it has to be encoded again
    stretch = BatchStretch(digest.SMALLEST, batches)
    for part in outgoing([stretch], View(0, 1)):
        if isinstance(part, Outgoing):
            stamp(part, -1, -1, -1)
    for records in visible_records([stretch], View(0, 1)):
        arrow_records(records)
    for part in regrouped(visible_records([stretch], View(0, 1, share=Share(0, 1, 0)))):
        stamp(part, -1, -1, -1)
    twice = list(outgoing([BatchStretch(digest.SMALLEST, walk(digest.SMALLEST).batches)], View(0, 1))) * 2
    for part in merged(twice, BatchMergeRule(small_bytes=1 << 10, most_bytes=1 << 12)):
        if isinstance(part, Outgoing):
            stamp(part, -1, -1, -1)
    for filler in filler_batches(1):
        stamp(filler, -1, -1, -1)
