"""A repository in dictionaries that fails by chance, before the effect of a call or after it.

Requests, receipts and decisions are put if absent, like the documents of a real repository.
"""

from collections.abc import Callable
from datetime import datetime
from random import Random
from typing import TypeVar

import msgspec

from logkeep.checkpoint.partition_copy import PartitionCopy
from logkeep.checkpoint.records import Record
from logkeep.checkpoint.steps import Steps
from logkeep.errors import StoreUnreachable

ValueT = TypeVar("ValueT")
_TRIES = 3


class SimRequest(msgspec.Struct, frozen=True):
    """What a coordinator stores before it sends the first create."""

    id: int
    nonce: str
    deadline: datetime
    retake: bool


class SimReceipt(msgspec.Struct, frozen=True):
    """A copy, and the names of its objects: a snapshot or none, and the log in pieces."""

    copy: PartitionCopy
    snapshot: str = ""
    log: tuple[str, ...] = ()


class SimDecision(msgspec.Struct, frozen=True):
    """The end of a backup: its copies, or why it failed."""

    receipts: tuple[SimReceipt, ...] = ()
    reason: str = ""


class StoredSnapshot(msgspec.Struct, frozen=True):
    user: dict[str, bytes]
    system: dict[str, bytes]


class SimStore:
    def __init__(self, choose: Random, errors: float) -> None:
        self.requests: dict[int, SimRequest] = {}
        self.receipts: dict[tuple[int, int, int], SimReceipt] = {}
        self.decisions: dict[int, SimDecision] = {}
        self.objects: dict[str, StoredSnapshot | tuple[Record, ...]] = {}
        self.down = False
        self.errors = errors
        self._choose = choose

    def call(self, effect: Callable[[], ValueT]) -> Steps[ValueT]:
        """One call, with one point before it and one after."""
        yield "store call"
        self.fail_by_chance()
        result = effect()
        self.fail_by_chance()
        yield "store answer"
        return result

    def call_again(self, effect: Callable[[], ValueT]) -> Steps[ValueT]:
        """A few tries, as the shipped stores make them. Effects are such that twice is as good as once."""
        for _ in range(_TRIES - 1):
            try:
                return (yield from self.call(effect))
            except StoreUnreachable:
                yield "store retry"
        return (yield from self.call(effect))

    def receipts_of(self, backup_id: int) -> list[SimReceipt]:
        return [found for key, found in self.receipts.items() if key[0] == backup_id]

    def fail_by_chance(self) -> None:
        if self.down or (self.errors and self._choose.random() < self.errors):
            raise StoreUnreachable("the simulated store did not answer")
