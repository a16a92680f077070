"""The whole data matrix on one broker, with the cleaner's work done and stopped."""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.formats.kafka.batches import walk
from tests.support.kafka.copied_logs import look_at_disk
from tests.support.kafka.topic_matrix import Matrix, let_go
from tests.support.processes import wait_for


@contextmanager
def written_matrix(kafka: EmbeddedKafka) -> Iterator[Matrix]:
    """Every topic of the matrix; a transaction stays open until the end."""
    made = Matrix(kafka)
    made.compacted()
    made.codecs()
    made.java()
    open_transaction = made.transactions(transaction_timeout_ms=900_000)
    made.shapes()
    made.append_time()
    made.large()
    made.later_start()
    made.create("idle", 1)
    until_cleaned(made, kafka)
    yield made
    let_go(open_transaction)


def until_cleaned(made: Matrix, kafka: EmbeddedKafka) -> None:
    """Wait until the cleaner has been in the compacted topic, and let it stay as it is from then on."""
    wait_for(lambda: _cleaned(made, kafka), "the cleaner")
    stop_cleaning(made, kafka)


def stop_cleaning(made: Matrix, kafka: EmbeddedKafka) -> None:
    """Also a pass of the cleaner that had begun has ended."""
    made.stop_cleaning()
    looks = deque[bytes](maxlen=20)
    wait_for(lambda: _settled(looks, kafka), "the cleaner to end")


@contextmanager
def smoke_matrix(kafka: EmbeddedKafka) -> Iterator[Matrix]:
    """The topics that differ most between releases: codecs, transactions, one of them left open, compaction."""
    made = Matrix(kafka)
    made.compacted()
    made.codecs()
    open_transaction = made.transactions(transaction_timeout_ms=900_000)
    made.create("idle", 1)
    until_cleaned(made, kafka)
    yield made
    open_transaction.abort_transaction(30)


def _cleaned(matrix: Matrix, kafka: EmbeddedKafka) -> bool:
    """Whether there are holes in batches, between batches, and a batch without records."""
    matrix.stir()
    found = look_at_disk(kafka, "compacted", 0, 0, 1 << 60)
    if not found:
        return False
    headers = walk(b"".join(found)).batches.headers
    counts, deltas = headers["records"], headers["last_offset_delta"]
    bases = headers["base_offset"]
    between = (bases[1:] > bases[:-1] + deltas[:-1] + 1).any()
    return bool((counts == 0).any() and ((counts > 0) & (counts <= deltas)).any() and between)


def _settled(looks: deque[bytes], kafka: EmbeddedKafka) -> bool:
    """Whether the compacted log looked the same for several times the cleaner's own rhythm."""
    found = look_at_disk(kafka, "compacted", 0, 0, 1 << 60)
    looks.append(b"" if found is None else b"".join(found))
    return len(looks) == looks.maxlen and len(set(looks)) == 1 and found is not None
