"""The state of one partition while its leader processes: user keys, the machine, the digest, the last cut.

Changes are collected by `add` and stored by `commit` in one transaction of the backend; `rollback` drops them. Replay
and processing use the same two calls, so both give the same state.

System keys of this module: `digest` (64 hex digits), `external` {name: position}, `cut` (`CutFacts`), `checkpoints`
[[id, position, cut end]].
"""

from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec

from logkeep.checkpoint import state_digest
from logkeep.checkpoint.machine_state import Applied, MachineState, load
from logkeep.checkpoint.records import RESERVED_PREFIX
from logkeep.checkpoint.state.backend import StateBackend, Write

EXTERNAL = f"{RESERVED_PREFIX}external/"
"""User keys below this hold positions in other systems."""
_MOST_CHECKPOINTS = 4096
_Facts = TypeVar("_Facts")


class CutFacts(msgspec.Struct, frozen=True):
    """What a backup says of a partition's state at its checkpoint."""

    id: int
    position: int
    cut_end: int
    digest: str
    external: dict[str, int] = {}
    previous_id: int = 0
    """The checkpoint before this one."""
    pending: int = -1
    """Messages without an acknowledgement: after a restore they are sent again. -1: not counted."""


class _Tracked(msgspec.Struct, frozen=True):
    machine: MachineState
    digest: int
    external: dict[str, int]
    cut: CutFacts | None
    checkpoints: tuple[tuple[int, int, int], ...]


class PartitionState:
    """See the module. One thread uses it."""

    def __init__(self, empty: MachineState, backend: StateBackend) -> None:
        """`empty` says of which application, history and partition the backend's state is."""
        self.backend = backend
        digest = backend.get_system("digest")
        self._now = _Tracked(
            load(empty, backend.system_items()),
            int(digest, 16) if digest else state_digest.EMPTY,
            self._stored("external", dict[str, int], {}),
            self._stored("cut", CutFacts | None, None),
            self._stored("checkpoints", tuple[tuple[int, int, int], ...], ()),
        )
        self._committed = self._now
        self._writes: dict[str, bytes | None] = {}
        self._system: dict[str, bytes | None] = {}

    @property
    def machine(self) -> MachineState:
        return self._now.machine

    @property
    def cut(self) -> CutFacts | None:
        """The facts of the last checkpoint."""
        return self._now.cut

    @property
    def digest(self) -> str:
        return state_digest.as_text(self._now.digest)

    @property
    def checkpoints(self) -> tuple[tuple[int, int, int], ...]:
        """Id, position and cut end of the last checkpoints, oldest first."""
        return self._now.checkpoints

    def get(self, key: str) -> bytes | None:
        return self._writes[key] if key in self._writes else self.backend.get(key)

    def each_key(self) -> Iterator[str]:
        """All keys of users."""
        for key, _ in self.backend.items():
            if key not in self._writes and not key.startswith(RESERVED_PREFIX):
                yield key
        for key, value in self._writes.items():
            if value is not None and not key.startswith(RESERVED_PREFIX):
                yield key

    def cut_at(self, checkpoint_id: int, position: int, cut_end: int) -> CutFacts:
        """The facts of a checkpoint whose create is the next input."""
        now = self._now
        pending = sum(map(len, now.machine.outbox.values()))
        return CutFacts(checkpoint_id, position, cut_end, self.digest, now.external, now.machine.checkpoint_id, pending)

    def add(self, applied: Applied, cut_end: int = -1) -> None:
        """One more change. `cut_end` is needed if it is a new checkpoint."""
        digest, external = self._now.digest, self._now.external
        for key, value in applied.writes:
            digest = state_digest.changed(digest, key, self.get(key), value)
            self._writes[key] = value
            external = _with_external(external, key, value)
        self._system.update(applied.system)
        cut, checkpoints, machine = self._now.cut, self._now.checkpoints, applied.state
        if machine.checkpoint_id != self.machine.checkpoint_id:
            cut = self.cut_at(machine.checkpoint_id, machine.checkpoint_position, cut_end)
            checkpoints = (*checkpoints, (cut.id, cut.position, cut.cut_end))[-_MOST_CHECKPOINTS:]
        self._now = _Tracked(machine, digest, external, cut, checkpoints)

    def commit(self, position: int) -> None:
        """Store all changes, as of this position of the log."""
        system = {**self._system, **self._changed_facts()}
        writes = [Write(key, value) for key, value in self._writes.items()]
        self.backend.apply(position, writes, [Write(key, value) for key, value in system.items()])
        self._committed = self._now
        self._writes.clear()
        self._system.clear()

    def rollback(self) -> None:
        self._now = self._committed
        self._writes.clear()
        self._system.clear()

    def _changed_facts(self) -> dict[str, bytes]:
        now, before, found = self._now, self._committed, dict[str, bytes]()
        if now.digest != before.digest:
            found["digest"] = self.digest.encode()
        for name in ("external", "cut", "checkpoints"):
            if getattr(now, name) is not getattr(before, name):
                found[name] = msgspec.msgpack.encode(getattr(now, name))
        return found

    def _stored(self, key: str, kind: Any, default: _Facts) -> _Facts:
        data = self.backend.get_system(key)
        return default if data is None else msgspec.msgpack.decode(data, type=kind)


def _with_external(external: dict[str, int], key: str, value: bytes | None) -> dict[str, int]:
    if not key.startswith(EXTERNAL) or value is None:
        return external
    return {**external, key.removeprefix(EXTERNAL): msgspec.msgpack.decode(value, type=int)}
