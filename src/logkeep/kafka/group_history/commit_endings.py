"""How every commit of a group ended. Pure: records and markers of one log in order, commits with their endings out.

A commit inside a transaction counts from the commit marker on, unless a record of the same key with a greater offset
came before the marker: the coordinator keeps the later record.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import msgspec

from logkeep.formats.kafka.transactions import COMMIT
from logkeep.kafka.group_history.values import ArchivedCommit

PENDING: Final = "pending"
CURRENT: Final = "current"
REPLACED: Final = "replaced"
ERASED: Final = "erased"
ABORTED: Final = "aborted"
OVERTAKEN: Final = "overtaken"

CommitKey = bytes
"""The key of a record without its type."""


@dataclass
class CommitEndings:
    _commits: list[ArchivedCommit] = field(default_factory=list)
    _current: dict[CommitKey, int] = field(default_factory=dict)
    _latest: dict[CommitKey, int] = field(default_factory=dict)
    """The greatest offset of a record that counts."""
    _pending: dict[int, list[tuple[CommitKey, int]]] = field(default_factory=dict)

    def commit(self, key: CommitKey, commit: ArchivedCommit, producer: int | None) -> None:
        """`producer`: of the transaction; None outside of one."""
        number = len(self._commits)
        self._commits.append(commit)
        if producer is None:
            self._take_effect(key, number, commit.written_ms)
        else:
            self._pending.setdefault(producer, []).append((key, number))

    def tombstone(self, key: CommitKey, offset: int, time_ms: int) -> None:
        self._latest[key] = max(offset, self._latest.get(key, -1))
        if key in self._current:
            self._end(self._current.pop(key), ERASED, time_ms)

    def marker(self, producer: int, kind: int, time_ms: int) -> None:
        for key, number in self._pending.pop(producer, ()):
            if kind != COMMIT:
                self._end(number, ABORTED, time_ms)
            elif self._latest.get(key, -1) > self._commits[number].record_offset:
                self._end(number, OVERTAKEN, time_ms)
            else:
                self._take_effect(key, number, time_ms)

    @property
    def producers(self) -> Iterable[int]:
        """Producers with a transaction that is open so far."""
        return self._pending

    def __len__(self) -> int:
        return len(self._commits)

    def commits(self) -> tuple[ArchivedCommit, ...]:
        return tuple(self._commits)

    def _take_effect(self, key: CommitKey, number: int, time_ms: int) -> None:
        if key in self._current:
            self._end(self._current[key], REPLACED, time_ms)
        self._current[key], self._latest[key] = number, self._commits[number].record_offset
        changed = msgspec.structs.replace(self._commits[number], effective_ms=time_ms, ending=CURRENT)
        self._commits[number] = changed

    def _end(self, number: int, ending: str, time_ms: int) -> None:
        self._commits[number] = msgspec.structs.replace(self._commits[number], ending=ending, ended_ms=time_ms)
