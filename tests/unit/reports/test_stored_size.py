"""How much a source stores: counted up to a limit, and what marks name."""

from datetime import UTC, datetime

from logkeep.reports.stored_size import stored_size, total_size
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.documents import seal
from logkeep.repository.upkeep.marks import GarbageMark
from logkeep.store.memory import MemoryStore


def test_objects_of_the_source_are_counted_up_to_a_limit() -> None:
    place = SourceRef(MemoryStore(), "r", "prod")
    for number in range(5):
        place.store.put_new(f"sources/prod/parts/{number:016x}.parquet", b"12345")
    place.store.put_new("sources/prod2/parts/0000000000000000.parquet", b"of another source")
    size = stored_size(place)
    assert (size.objects, size.stored_bytes, size.complete, size.garbage_marked_at) == (5, 25, True, None)
    few = stored_size(place, most_objects=3)
    assert (few.objects, few.stored_bytes, few.complete) == (3, 15, False)
    assert stored_size(place, most_objects=5).complete
    both = total_size([size, few])
    assert (both.objects, both.complete) == (8, False)
    assert not total_size([size, None]).complete, "a source that cannot be read is not counted"


def test_garbage_is_what_a_mark_names_and_still_exists() -> None:
    place = SourceRef(MemoryStore(), "r", "prod")
    for number in range(3):
        place.store.put_new(f"sources/prod/parts/{number:016x}.parquet", b"12345")
    names = tuple(f"sources/prod/parts/{number:016x}.parquet" for number in (1, 2, 9))
    mark = GarbageMark(repository="r", source="prod", generation=1, names=names)
    place.store.put_new(layout.mark("prod", 1, "0" * 16), seal(mark))
    place.store.put_new(layout.mark("prod", 1, "1" * 16), b"cannot be read")
    size = stored_size(place)
    assert (size.garbage_objects, size.garbage_bytes) == (2, 10)
    assert size.garbage_marked_at is not None
    assert abs((datetime.fromisoformat(size.garbage_marked_at) - datetime.now(UTC)).total_seconds()) < 3600
