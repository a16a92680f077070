"""Parts of uploads in flight stay within one limit, however many streams are open."""

import pytest

from logkeep.store.access import open_store
from logkeep.store.buckets.upload_memory import OF_THIS_PROCESS, UploadMemory

MIB = 1 << 20


def test_a_single_stream_gets_the_most_and_further_ones_get_less() -> None:
    memory = UploadMemory(160 * MIB)
    assert [memory.take(8 * MIB).parts for _ in range(6)] == [8, 5, 2, 1, 1, 1]


def test_what_is_released_once_is_used_again_once() -> None:
    memory = UploadMemory(160 * MIB)
    first = memory.take(8 * MIB)
    assert memory.take(8 * MIB).parts == 5
    first.release()
    first.release()
    assert [memory.take(8 * MIB).parts for _ in range(2)] == [7, 3]


@pytest.mark.parametrize("part_mib", (8, 100, 1_000))
def test_every_stream_makes_progress(part_mib: int) -> None:
    memory = UploadMemory(160 * MIB)
    assert all(memory.take(part_mib * MIB).parts >= 1 for _ in range(20))


def test_an_aborted_stream_gives_its_memory_back() -> None:
    store = open_store("s3://bucket/p?endpoint=http://127.0.0.1:1&region=us-east-1")
    for _ in range(30):
        writer = store.open_new("a")
        writer.abort()
        writer.abort()
    free = OF_THIS_PROCESS.take(8 * MIB)
    free.release()
    assert free.parts == 8
