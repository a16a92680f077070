"""Conformance checks of writes."""

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from logkeep.errors import AlreadyExists, ObjectMissing, VersionMismatch
from logkeep.store.base import Store
from logkeep.store.conformance.trial import Trial, another, pattern, race, raises

_CHUNK_BYTES = 4 << 20


def read_back(trial: Trial) -> str | None:
    store, name, data = trial.store, trial.name("some/where/object"), pattern(100_000)
    store.put_new(name, data)
    reader = another(store)
    info = reader.head(name)
    if reader.get(name, len(data)) != data or store.get_with_info(name, len(data)) != (data, info):
        return "other bytes came back"
    return None if (info.name, info.size) == (name, len(data)) else f"its size is given as {info.size}"


def empty_object(trial: Trial) -> str | None:
    trial.store.put_new(trial.name("put"), b"")
    if trial.store.open_new(trial.name("stream")).close() != 0:
        return "an empty stream has a length"
    same = all(trial.store.get(trial.name(leaf), 0) == b"" for leaf in ("put", "stream"))
    return None if same and trial.listed() == ["put", "stream"] else "an empty object was not kept"


def listed_at_once(trial: Trial) -> str | None:
    reader = another(trial.store)
    for number in range(5):
        trial.store.put_new(trial.name(f"{number}"), b"x")
        found = list(reader.list(trial.prefix))
        if len(found) != number + 1:
            return f"after {number + 1} writes {len(found)} objects were listed"
        if found[-1] != trial.store.head(trial.name(f"{number}")):
            return "the listing and the object differ"
    return None


def taken_name_refused(trial: Trial) -> str | None:
    name = trial.name("taken")
    trial.store.put_new(name, b"first")
    problem = raises(AlreadyExists, lambda: trial.store.put_new(name, b"second"))
    if problem:
        return f"a second write {problem}"
    return None if trial.store.get(name, 10) == b"first" else "the first bytes were overwritten"


def put_new_race(trial: Trial) -> str | None:
    return _raced(trial, _put_new_race)


def _put_new_race(trial: Trial, racers: Sequence[Store], name: str) -> str | None:
    def attempt(own: Store, racer: int) -> None:
        own.put_new(name, b"racer %d" % racer)

    winners = race(racers, attempt, AlreadyExists)
    if len(winners) != 1:
        return f"{len(winners)} of {trial.scale.racers} writers won"
    return None if trial.store.get(name, 100) == b"racer %d" % winners[0] else "the stored bytes are not the winner's"


def _raced(trial: Trial, one_race: Callable[[Trial, Sequence[Store], str], str | None]) -> str | None:
    """All races at once, each for a name of its own: some servers make the losers wait for seconds.

    Racers take part in every race: a client of a cloud costs 10 ms, mostly for its certificates.
    """
    names = [trial.name(f"race-{number}") for number in range(trial.scale.races)]
    racers = [another(trial.store) for _ in range(trial.scale.racers)]
    with ThreadPoolExecutor(len(names)) as pool:
        return next(filter(None, pool.map(lambda name: one_race(trial, racers, name), names)), None)


def replace_fresh(trial: Trial) -> str | None:
    name = trial.name("lease")
    trial.store.put_new(name, b"one")
    for data in (b"two", b"one", b"three"):
        _, info = trial.store.get_with_info(name, 10)
        trial.store.replace(name, data, info.version)
        got, now = trial.store.get_with_info(name, 10)
        if got != data or now.version == info.version:
            return "the new bytes, or their new version, are missing"
    return None


def replace_stale(trial: Trial) -> str | None:
    name = trial.name("lease")
    trial.store.put_new(name, b"one")
    old = trial.store.head(name).version
    trial.store.replace(name, b"two", old)
    problem = raises(VersionMismatch, lambda: trial.store.replace(name, b"three", old))
    if problem:
        return f"replacing an old version {problem}"
    if trial.store.get(name, 10) != b"two":
        return "newer bytes were overwritten"
    trial.store.delete(name)
    problem = raises(ObjectMissing, lambda: trial.store.replace(name, b"three", old))
    return f"replacing a missing object {problem}" if problem else None


def replace_race(trial: Trial) -> str | None:
    return _raced(trial, _replace_race)


def _replace_race(trial: Trial, racers: Sequence[Store], name: str) -> str | None:
    trial.store.put_new(name, b"first")
    trial.store.replace(name, b"start", trial.store.head(name).version)
    version = trial.store.head(name).version

    def attempt(own: Store, racer: int) -> None:
        own.replace(name, b"racer %d of %s" % (racer, version.encode()), version)

    winners = race(racers, attempt, VersionMismatch)
    return None if len(winners) == 1 else f"{len(winners)} of {trial.scale.racers} writers won"


def stream(trial: Trial) -> str | None:
    name, data = trial.name("stream"), pattern(trial.scale.stream_bytes + 12_345)
    writer = trial.store.open_new(name, len(data))
    try:
        for start in range(0, len(data), _CHUNK_BYTES):
            writer.write(memoryview(data)[start : start + _CHUNK_BYTES])
        if trial.listed() or raises(ObjectMissing, lambda: trial.store.head(name)):
            return "an unfinished stream is visible"
        length = writer.close()
    finally:
        writer.abort()
    if length != len(data) or trial.store.head(name).size != len(data):
        return f"{len(data)} bytes were streamed, {trial.store.head(name).size} arrived"
    stored = hashlib.sha256(trial.store.get(name, len(data))).digest()
    return None if stored == hashlib.sha256(data).digest() else "other bytes came back"


def stream_buffer_reuse(trial: Trial) -> str | None:
    name, buffer = trial.name("stream"), bytearray(_CHUNK_BYTES)
    writer = trial.store.open_new(name)
    try:
        for letter in b"abcd":
            buffer[:] = bytes([letter]) * len(buffer)
            writer.write(memoryview(buffer))
        writer.close()
    finally:
        writer.abort()
    expected = b"".join(bytes([letter]) * len(buffer) for letter in b"abcd")
    return None if trial.store.get(name, len(expected)) == expected else "the stream kept reading a buffer it was lent"


def stream_abort(trial: Trial) -> str | None:
    for leaf, size in (("short", 10), ("long", trial.scale.stream_bytes)):
        writer = trial.store.open_new(trial.name(leaf))
        try:
            writer.write(pattern(size))
        finally:
            writer.abort()
        writer.abort()
    return "an aborted stream is visible" if trial.listed() else None


def delete_twice(trial: Trial) -> str | None:
    name = trial.name("gone")
    trial.store.delete(name)
    trial.store.put_new(name, b"x")
    trial.store.delete(name)
    trial.store.delete(name)
    if trial.listed():
        return "a removed object is still listed"
    return raises(ObjectMissing, lambda: trial.store.head(name))
