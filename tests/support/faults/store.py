"""A store between the code under test and a real one, in which calls fail as planned."""

import itertools
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from logkeep.errors import LogkeepError
from logkeep.store.base import ObjectInfo, ObjectMetadata, ObjectWriter, Store
from logkeep.store.wrapper import DelegatingStore
from tests.support.faults.plan import Fault, Plan, no_faults

T = TypeVar("T")
_NO_FAULT = Fault()


@dataclass(frozen=True)
class Call:
    number: int
    operation: str
    name: str


@dataclass
class Faults:
    """The shared count of calls, and what the plan says about each."""

    plan: Plan
    sleep: Callable[[float], None]
    numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))
    calls: list[Call] = field(default_factory=list)
    written: list[str] = field(default_factory=list)

    def next(self, operation: str, name: str) -> Fault:
        call = Call(next(self.numbers), operation, name)
        self.calls.append(call)
        return self.plan(call.number, operation, name) or _NO_FAULT

    def applied(self, operation: str, name: str, call: Callable[[], T]) -> T:
        """Make one call the way the plan wants it."""
        fault = self.next(operation, name)
        self.begin(fault)
        result = self.made(fault, call)
        self.end(fault)
        return result

    def made(self, fault: Fault, call: Callable[[], T]) -> T:
        """An answer that is an error of the store is an answer too: the process may die of it."""
        try:
            return call()
        except LogkeepError:
            self.end(replace(fault, after=None))
            raise

    def begin(self, fault: Fault) -> None:
        if fault.delay_s:
            self.sleep(fault.delay_s)
        if fault.before is not None:
            raise fault.before

    def end(self, fault: Fault) -> None:
        if fault.kill:
            os.kill(os.getpid(), signal.SIGKILL)
        if fault.after is not None:
            raise fault.after

    def read(self, operation: str, name: str, call: Callable[[], bytes]) -> bytes:
        fault = self.next(operation, name)
        self.begin(fault)
        data = self.made(fault, call)
        self.end(fault)
        return spoiled(data, fault)


class FaultyStore(DelegatingStore):
    """Hands calls on, except as planned. `calls` tells what was called so far; without a plan nothing fails."""

    def __init__(self, inner: Store, plan: Plan = no_faults, sleep: Callable[[float], None] = time.sleep) -> None:
        super().__init__(inner)
        self._faults = Faults(plan, sleep)

    @property
    def calls(self) -> list[Call]:
        return list(self._faults.calls)

    def put_new(self, name: str, data: bytes, metadata: ObjectMetadata | None = None) -> None:
        put = partial(self.inner.put_new, name, data, metadata)
        self._faults.applied("put_new", name, lambda: self._wrote(name, put))

    def replace(self, name: str, data: bytes, version: str) -> None:
        self._faults.applied("replace", name, lambda: self.inner.replace(name, data, version))

    def open_new(self, name: str, size_hint: int = 0) -> ObjectWriter:
        inner = self._faults.applied("open_new", name, lambda: self.inner.open_new(name, size_hint))
        return FaultyWriter(inner, name, self._faults)

    def copy_new(self, name: str, to: str) -> None:
        self._faults.applied("copy_new", to, lambda: self.inner.copy_new(name, to))

    def get(self, name: str, limit: int) -> bytes:
        return self._faults.read("get", name, lambda: self.inner.get(name, limit))

    def get_with_info(self, name: str, limit: int) -> tuple[bytes, ObjectInfo]:
        infos: list[ObjectInfo] = []

        def call() -> bytes:
            data, info = self.inner.get_with_info(name, limit)
            infos.append(info)
            return data

        return self._faults.read("get_with_info", name, call), infos[0]

    def get_range(self, name: str, start: int, length: int) -> bytes:
        return self._faults.read("get_range", name, lambda: self.inner.get_range(name, start, length))

    def head(self, name: str) -> ObjectInfo:
        return self._faults.applied("head", name, lambda: self.inner.head(name))

    def list(self, prefix: str, after: str = "", foreign: list[str] | None = None) -> Iterator[ObjectInfo]:
        fault = self._faults.next("list", prefix)
        self._faults.begin(fault)
        hidden = set(self._faults.written[-fault.hide_newest :]) if fault.hide_newest else set()
        seen = (info for info in self.inner.list(prefix, after, foreign) if info.name not in hidden)
        yield from itertools.islice(seen, fault.items)
        self._faults.end(fault)

    def delete(self, name: str) -> None:
        self._faults.applied("delete", name, lambda: self.inner.delete(name))

    def _wrote(self, name: str, call: Callable[[], None]) -> None:
        call()
        self._faults.written.append(name)


class FaultyWriter:
    """A stream whose writes, close and abort are numbered calls too."""

    def __init__(self, inner: ObjectWriter, name: str, faults: Faults) -> None:
        self._inner = inner
        self._name = name
        self._faults = faults

    def write(self, data: memoryview | bytes) -> None:
        self._faults.applied("write", self._name, lambda: self._inner.write(data))

    def close(self) -> int:
        def call() -> int:
            length = self._inner.close()
            self._faults.written.append(self._name)
            return length

        return self._faults.applied("close", self._name, call)

    def abort(self) -> None:
        self._faults.applied("abort", self._name, self._inner.abort)


def spoiled(data: bytes, fault: Fault) -> bytes:
    """The bytes of a read as the fault leaves them."""
    if fault.truncate_to is not None:
        data = data[: fault.truncate_to]
    if fault.flip_at is not None and data:
        place = fault.flip_at % len(data)
        data = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
    return data
