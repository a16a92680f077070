"""A feature becomes required in both copies of the format object, once, whoever else asks for it at the same time."""

import pytest

from logkeep.errors import CommitConflict, Damaged, FormatTooNew
from logkeep.model.time import random_token, utc_now
from logkeep.repository.chain import layout
from logkeep.repository.chain.format import (
    ZSTD_FRAMES,
    FormatDocument,
    StoreFacts,
    check_features,
    create,
    open_format,
    require_feature,
)
from logkeep.repository.upkeep.repair import repair_format
from logkeep.store.base import Store
from logkeep.store.memory import MemoryStore
from logkeep.store.wrapper import DelegatingStore

FACTS = StoreFacts(put_new=True, replace=True, durable=True)


@pytest.fixture
def store() -> MemoryStore:
    made = MemoryStore()
    create(made, FACTS, utc_now(), random_token)
    return made


def copies(store: Store) -> list[bytes]:
    return [store.get(name, FormatDocument.limit) for name in (layout.FORMAT, layout.FORMAT_COPY)]


def test_both_copies_say_so_and_nothing_else_changes(store: MemoryStore) -> None:
    before = open_format(store).document
    for _ in range(2):
        require_feature(store, ZSTD_FRAMES)
    after = open_format(store).document
    assert after.required_features == (ZSTD_FRAMES,)
    assert (after.repository, after.created, after.store) == (before.repository, before.created, before.store)
    first, second = copies(store)
    assert first == second


def test_a_release_without_it_refuses(store: MemoryStore) -> None:
    require_feature(store, ZSTD_FRAMES)
    with pytest.raises(FormatTooNew, match="zstd-frames"):
        check_features(open_format(store).document, known=frozenset())


class Raced(DelegatingStore):
    """Before each of the first replacements somebody else makes the same one."""

    left = 1

    def replace(self, name: str, data: bytes, version: str) -> None:
        if self.left:
            self.left -= 1
            self.inner.replace(name, data, self.inner.head(name).version)
        self.inner.replace(name, data, version)


def test_a_race_is_no_failure(store: MemoryStore) -> None:
    require_feature(Raced(store), ZSTD_FRAMES)
    assert open_format(store).document.required_features == (ZSTD_FRAMES,)


class Restless(DelegatingStore):
    def get_with_info(self, name, limit):  # type: ignore[no-untyped-def]  # same as the parent's
        data, info = self.inner.get_with_info(name, limit)
        self.inner.replace(name, data, info.version)
        return data, info


def test_an_object_that_never_stands_still_is_told(store: MemoryStore) -> None:
    with pytest.raises(CommitConflict, match="keep changing"):
        require_feature(Restless(store), ZSTD_FRAMES)


@pytest.mark.parametrize("lost", [layout.FORMAT, layout.FORMAT_COPY])
def test_a_damaged_copy_is_mended_from_the_one_that_knows(store: MemoryStore, lost: str) -> None:
    store.delete(lost)
    store.put_new(lost, b"nonsense")
    require_feature(store, ZSTD_FRAMES)
    list(repair_format(store, open_format(store).document, dry_run=False))
    first, second = copies(store)
    assert first == second
    assert ZSTD_FRAMES.encode() in first


def test_two_damaged_copies_stop_it(store: MemoryStore) -> None:
    for name in (layout.FORMAT, layout.FORMAT_COPY):
        store.delete(name)
        store.put_new(name, b"nonsense")
    with pytest.raises(Damaged):
        require_feature(store, ZSTD_FRAMES)
