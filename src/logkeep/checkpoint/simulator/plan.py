"""What happens in one schedule. Everything follows from the seed; a shorter plan is the same with parts left out."""

import random
from collections.abc import Iterator
from typing import Literal

import msgspec

from logkeep.model.plurals import plural

FaultKind = Literal[
    "crash", "depose", "restart all", "outage", "coordinator crash", "snapshot", "compact", "lose state"
]
KINDS: tuple[FaultKind, ...] = (
    *("crash", "depose", "restart all", "outage", "coordinator crash", "lose state"),
    *("snapshot", "snapshot", "snapshot", "compact"),
)
SHIPPED_EVERY = 16
_LEAST_TICKS, _MOST_TICKS = 120, 400


class Fault(msgspec.Struct, frozen=True):
    """Happens at a tick. `number` chooses the partition, the coordinator, or for how long."""

    tick: int
    kind: FaultKind
    number: int


class SchedulePlan(msgspec.Struct, frozen=True):
    """One schedule. Chances are per message or per call of the store."""

    seed: int
    partitions: int
    commands: int
    backups: int
    ticks: int
    loss: float
    doubles: float
    store_errors: float
    faults: tuple[Fault, ...]
    retake: bool = False
    shipped: bool = False
    """With the shipped actor, coordinator and restore, which take more time than their models."""

    def __str__(self) -> str:
        chances = f"loss {self.loss}, doubles {self.doubles}, store errors {self.store_errors}"
        sizes = [
            (self.partitions, "partition"),
            (self.commands, "command"),
            (self.backups, "backup"),
            (self.ticks, "tick"),
        ]
        size = ", ".join(plural(number, noun) for number, noun in sizes)
        head = f"seed {self.seed}: {size}, {chances}"
        return "\n".join((head, *(f"  tick {f.tick}: {f.kind} {f.number}" for f in self.faults)))


def make_plan(seed: int) -> SchedulePlan:
    choose = random.Random(f"plan {seed}")  # noqa: S311 - a schedule is reproducible
    ticks = choose.randrange(_LEAST_TICKS, _MOST_TICKS)
    faults = sorted(
        (
            Fault(choose.randrange(ticks), choose.choice(KINDS), choose.randrange(64))
            for _ in range(choose.randrange(14))
        ),
        key=lambda fault: fault.tick,
    )
    return SchedulePlan(
        seed=seed,
        partitions=choose.choice((2, 2, 3)),
        commands=choose.randrange(3, 14),
        backups=choose.randrange(1, 4),
        ticks=ticks,
        loss=choose.choice((0.0, 0.1, 0.3)),
        doubles=choose.choice((0.0, 0.1, 0.3)),
        store_errors=choose.choice((0.0, 0.0, 0.05, 0.2)),
        faults=tuple(faults),
        retake=choose.random() < 0.3,
        shipped=seed % SHIPPED_EVERY == 0,
    )


def shorter(plan: SchedulePlan) -> Iterator[SchedulePlan]:
    """Plans with one thing less each, those that leave out most first."""
    change = msgspec.structs.replace
    if len(plan.faults) > 1:
        half = len(plan.faults) // 2
        yield change(plan, faults=plan.faults[:half])
        yield change(plan, faults=plan.faults[half:])
    for number in range(len(plan.faults)):
        yield change(plan, faults=plan.faults[:number] + plan.faults[number + 1 :])
    for chance in ("loss", "doubles", "store_errors"):
        if getattr(plan, chance):
            yield change(plan, **{chance: 0.0})
    if plan.commands > 1:
        yield change(plan, commands=plan.commands // 2)
        yield change(plan, commands=plan.commands - 1)
    if plan.backups > 1:
        yield change(plan, backups=plan.backups - 1)
    if plan.ticks > 50:
        yield change(plan, ticks=plan.ticks * 3 // 4)
    if plan.partitions > 2:
        yield change(plan, partitions=2)
