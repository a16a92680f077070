"""The `data` level walks archived logs: a flipped bit, a cut, and swapped batches are reported with their offsets."""

import hashlib

from logkeep.kafka.logs.batch_check import check_logs
from logkeep.model.segments import Codec
from logkeep.repository.parts import Expected
from logkeep.repository.verify.checks import HashUnit
from logkeep.store.memory import MemoryStore
from tests.support.kafka.handmade_batches import dense


def batch(base: int, records: int) -> bytes:
    return dense(base, records).encode()


LOG = b"".join(batch(base, 3) for base in range(0, 30, 3))


def codes(stored: bytes, hashed: bytes | None = None) -> list[tuple[str, str]]:
    store = MemoryStore()
    store.put_new("x", stored)
    digest = hashlib.sha256(stored if hashed is None else hashed).hexdigest()
    expected = Expected("x", len(stored), digest, Codec.NONE, len(stored), digest)
    result = check_logs(HashUnit(store, [expected]), lambda _: None)
    return [(f.code, f.what) for f in result.findings]


def test_a_whole_log_has_no_findings() -> None:
    assert codes(LOG) == []


def test_a_batch_whose_bytes_were_changed_before_they_were_hashed_is_found() -> None:
    one = len(batch(0, 3))
    broken = bytearray(LOG)
    broken[2 * one + 65] ^= 1
    assert codes(bytes(broken)) == [("batch-damaged", "the batch at offset 6 does not have the CRC-32C of its header")]


def test_a_log_that_ends_inside_a_batch_is_found() -> None:
    assert codes(LOG[:-5]) == [("batch-damaged", "after offset 26: the last batch is cut off")]


def test_batches_in_the_wrong_order_are_found() -> None:
    one = len(batch(0, 3))
    ((code, what),) = codes(LOG[one : 2 * one] + LOG[:one])
    assert code == "batch-damaged"
    assert "offset 5" in what


def test_a_wrong_hash_is_found_beside() -> None:
    assert [c for c, _ in codes(LOG, hashed=b"other")] == ["hash-mismatch"]
