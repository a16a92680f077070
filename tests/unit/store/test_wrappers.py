"""Metering, throttling, refusing writes."""

import pickle
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from logkeep.errors import ObjectMissing, StoreDenied, UsageError
from logkeep.store.base import sweepable
from logkeep.store.local.store import LocalStore
from logkeep.store.memory import MemoryStore
from logkeep.store.readonly import ReadOnlyStore
from logkeep.store.retrying import RetryingStore
from logkeep.store.throttled import ThrottledStore, TokenBucket, shared_by
from tests.support.metered_store import MeteredStore


class _Clock:
    def __init__(self) -> None:
        self.now_s = 100.0
        self.slept_s = 0.0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        self.slept_s += seconds


def test_meter_counts_calls_failures_and_bytes() -> None:
    store = MeteredStore(MemoryStore())
    store.put_new("a", b"12345")
    store.get("a", 10)
    store.get_range("a", 1, 2)
    writer = store.open_new("b")
    writer.write(memoryview(b"1234567"))
    writer.close()
    next(iter(store.list("")))
    with pytest.raises(ObjectMissing):
        store.get("nobody", 1)
    usage = store.meter.usage()
    assert usage.calls == {"put_new": 1, "get": 2, "get_range": 1, "open_new": 1, "write": 1, "close": 1, "list": 1}
    assert usage.failed == {"get": 1}
    assert (usage.bytes_up, usage.bytes_down) == (12, 7)


def test_throttle_keeps_the_average_in_both_directions() -> None:
    clock = _Clock()
    up, down = (TokenBucket(1_000, clock.monotonic, clock.sleep) for _ in range(2))
    store = ThrottledStore(MemoryStore(), upload=up, download=down)
    writer = store.open_new("stream")
    for _ in range(10):
        writer.write(bytes(1_000))
    writer.close()
    assert 9.5 <= clock.slept_s <= 10.0
    clock.slept_s = 0.0
    store.get("stream", 10_000)
    assert 9.5 <= clock.slept_s <= 10.0


def test_throttle_does_not_save_up_a_long_pause() -> None:
    clock = _Clock()
    store = ThrottledStore(MemoryStore(), upload=TokenBucket(1_000, clock.monotonic, clock.sleep))
    clock.now_s += 3_600
    store.put_new("a", bytes(5_000))
    assert 4.5 <= clock.slept_s <= 5.0


_SHARED_CLOCK = _Clock()
"""One that a pickled limit keeps: its functions are found by their names."""


def _shared_now() -> float:
    return _SHARED_CLOCK.monotonic()


def _shared_sleep(seconds: float) -> None:
    _SHARED_CLOCK.sleep(seconds)


def test_processes_share_a_limit_wherever_a_unit_holds_it(tmp_path: Path) -> None:
    clock = _SHARED_CLOCK
    limited = ThrottledStore(LocalStore(tmp_path), TokenBucket(8_000, _shared_now, _shared_sleep), None)
    whole = [{"anything": RetryingStore(limited)}]
    assert shared_by(whole, 1) is whole
    (share,) = shared_by(whole, 4)
    share["anything"].put_new("a", bytes(10_000))
    share["anything"].get("a", 10_000)
    assert 4.5 <= clock.slept_s <= 5.0
    whole[0]["anything"].put_new("b", bytes(10_000))
    assert clock.slept_s <= 5.0 + 1.25, "the wrapped one kept its own rate"


def test_a_rate_of_nothing_is_refused() -> None:
    with pytest.raises(UsageError):
        TokenBucket(0)


def test_read_only_refuses_every_write_and_leaves_no_way_round(tmp_path: Path) -> None:
    inner = LocalStore(tmp_path)
    inner.put_new("a", b"x")
    store = ReadOnlyStore(inner)
    assert store.get("a", 1) == b"x"
    below = sweepable(RetryingStore(store))
    assert below is not None
    for write in (
        lambda: store.put_new("b", b""),
        lambda: store.replace("a", b"", store.head("a").version),
        lambda: store.open_new("b"),
        lambda: store.delete("a"),
        lambda: below.sweep_partials(datetime.now(UTC) + timedelta(days=1)),
    ):
        with pytest.raises(StoreDenied):
            write()
    assert [info.name for info in inner.list("")] == ["a"]
    assert not store.abilities.put_new
    assert not store.abilities.replace


def test_wrappers_are_picklable_when_what_they_wrap_is(tmp_path: Path) -> None:
    pace = TokenBucket(10**9)
    store = ReadOnlyStore(MeteredStore(ThrottledStore(RetryingStore(LocalStore(tmp_path)), pace, pace)))
    LocalStore(tmp_path).put_new("a", b"x")
    assert pickle.loads(pickle.dumps(store)).get("a", 1) == b"x"  # noqa: S301  # our own bytes
    assert sweepable(MemoryStore()) is None
