"""Looks that earlier versions wrote are read for ever: `v1.json` was written once; a new version adds a file."""

from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.documents import seal, unseal
from logkeep.repository.chain.freshness import Freshness, put_freshness, read_freshness
from logkeep.store.memory import MemoryStore

FILE = Path(__file__).parent / "freshness" / "v1.json"
LOOKED = datetime(2026, 11, 16, 2, 15, 0, 123000, UTC)
LOOK = Freshness(
    repository="0123456789abcdef0123456789abcdef",
    source="shop",
    looked="2026-11-16T02:15:00.123Z",
    backup=20261116001348,
    lag_offsets=17,
)


def test_the_look_of_version_1_is_read_and_written_as_the_same_bytes() -> None:
    assert unseal(FILE.read_bytes(), Freshness, "v1.json") == LOOK
    assert seal(LOOK) == FILE.read_bytes()


def test_a_look_is_written_over_the_last_one() -> None:
    place = SourceRef(MemoryStore(), LOOK.repository, "shop")
    assert read_freshness(place) is None
    for lag in (3, 17):
        put_freshness(place, LOOKED, LOOK.backup, lag)
    assert read_freshness(place) == LOOK
    assert [i.name for i in place.store.list("")] == ["sources/shop/freshness.json"]
    assert not layout.collectable("shop", layout.freshness("shop"))


def test_a_look_at_another_source_or_repository_counts_for_nothing() -> None:
    store = MemoryStore()
    put_freshness(SourceRef(store, LOOK.repository, "shop"), LOOKED, LOOK.backup, 0)
    store.put_new("sources/other/freshness.json", store.get("sources/shop/freshness.json", 1 << 20))
    assert read_freshness(SourceRef(store, LOOK.repository, "other")) is None
    assert read_freshness(SourceRef(store, "f" * 32, "shop")) is None


def test_a_time_that_is_none_counts_for_nothing() -> None:
    for looked in ("yesterday", "2026-11-16T02:15:00.123"):
        place = SourceRef(MemoryStore(), LOOK.repository, "shop")
        place.store.put_new(layout.freshness("shop"), seal(replace(LOOK, looked=looked)))
        assert read_freshness(place) is None
