"""Compiles and stores every kernel: before parallel processes need them, or beside the package when it is installed.

`python -m logkeep.formats.warm` compiles them beside the package, as `make install` does, so that no user waits for
the compiler: all users can read them, and only the user who installs the package can change them.
"""

import logging
import os
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from logkeep.file_owners import who_can_replace
from logkeep.formats.applications import kernel_warmup
from logkeep.formats.compaction import barriers
from logkeep.formats.compare import digest, log_compare, vanished_keys
from logkeep.formats.datasets import arrow, oso_segments
from logkeep.formats.datasets.arrow import arrow_records
from logkeep.formats.datasets.avro import reader as avro_reader
from logkeep.formats.datasets.kafka_backup_v1 import files as kafka_backup_v1
from logkeep.formats.datasets.kafka_backup_v1 import reader as kafka_backup_v1_reader
from logkeep.formats.datasets.native_batches import native_batches
from logkeep.formats.jit import compile_from_now_on
from logkeep.formats.kafka.batches import APPEND_TIME, BatchStretch, walk
from logkeep.formats.kafka.key_hash_kernels import key_hashes
from logkeep.formats.kafka.partitioner import Share
from logkeep.formats.kafka.record_view import View, visible_records
from logkeep.formats.kafka.restore.merge_batches import BatchMergeRule, merged
from logkeep.formats.kafka.restore.regroup import regrouped
from logkeep.formats.kafka.restore.send_batches import Outgoing, outgoing, stamp
from logkeep.formats.kafka.restore.synthetic_batches import filler_batches
from logkeep.formats.kernel_files import BESIDE_THE_PACKAGE, edition
from logkeep.formats.zeebe import records as zeebe_records
from logkeep.formats.zookeeper import changes

_log = logging.getLogger(__name__)


def warm() -> None:
    """Call every kernel with the argument types that are used elsewhere: numba compiles per type."""
    compile_from_now_on()
    changes.warm()
    zeebe_records.warm()
    digest.warm()
    log_compare.warm()
    vanished_keys.warm()
    avro_reader.warm()
    batches = walk(digest.SMALLEST).batches
    batches.headers["attributes"] |= APPEND_TIME  # so that it has to be encoded again
    stretch = BatchStretch(digest.SMALLEST, batches)
    for part in outgoing([stretch], View(0, 1)):
        if isinstance(part, Outgoing):
            stamp(part, -1, -1, -1)
    for records in visible_records([stretch], View(0, 1)):
        kafka_backup_v1.encode(arrow_records(records))
        native_batches(arrow_records(records))
        arrow.warm(records)
        key_hashes(records.data, records.spans, np.uint64(1), np.uint64(2), np.empty((len(records), 2), np.uint64))
        barriers.warm(records)
        kernel_warmup.warm(records)
    for part in regrouped(visible_records([stretch], View(0, 1, share=Share(0, 1, 0)))):
        stamp(part, -1, -1, -1)
    kafka_backup_v1_reader.warm()
    oso_segments.warm()
    twice = list(outgoing([BatchStretch(digest.SMALLEST, walk(digest.SMALLEST).batches)], View(0, 1))) * 2
    for part in merged(twice, BatchMergeRule(small_bytes=1 << 10, most_bytes=1 << 12)):
        if isinstance(part, Outgoing):
            stamp(part, -1, -1, -1)
    for filler in filler_batches(1):
        stamp(filler, -1, -1, -1)


def compile_beside_package() -> bool:
    """Replace the kernels beside the package by newly compiled ones. False if other users could change them there."""
    if reason := who_can_replace(BESIDE_THE_PACKAGE.parent):
        _log.error("no kernels are stored beside the package: %s", reason)
        return False
    shutil.rmtree(BESIDE_THE_PACKAGE, ignore_errors=True)
    with TemporaryDirectory(dir=BESIDE_THE_PACKAGE.parent, prefix=".compiled-") as folder:
        os.environ["LOGKEEP_CACHE_DIR"] = folder
        warm()
        made = Path(folder, "kernels", edition())
        for file in made.iterdir():
            file.chmod(0o644)
        made.chmod(0o755)
        made.rename(BESIDE_THE_PACKAGE)
    return True


if __name__ == "__main__":
    logging.basicConfig(level=logging.ERROR)
    sys.exit(not compile_beside_package())
