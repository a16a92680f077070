"""Rebuilds the batch index of an archived log from the log itself."""

import hashlib

from logkeep.errors import Damaged
from logkeep.formats.kafka.batch_index import BatchIndex, index_of, join
from logkeep.kafka.logs.header_check import NOT_WRITTEN
from logkeep.repository.segments.log_batches import LogPieces
from logkeep.repository.segments.reader import StoredLog


def rebuild_index(log: StoredLog, sha256: str) -> BatchIndex:
    """The index of a log from its bytes, whose checksum must be the archived one. Raises Damaged."""
    summed, pieces, found, position = hashlib.sha256(), LogPieces(), list[BatchIndex](), 0
    for plain in log.pieces(summed.update):
        for _, batches in pieces.take(plain):
            found.append(index_of(batches, position))
            position += int(batches.sizes.sum())
    problem = pieces.problem or pieces.end_problem()
    if problem or summed.hexdigest() != sha256:
        raise Damaged(problem or NOT_WRITTEN, subject=log.name)
    return join(found)
