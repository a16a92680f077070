"""Who else holds what a member lacks: the other members of one backup, as far as they are archived. Pure.

A member that its leader brought up to date by a snapshot lacks what happened before. Nothing is lost by that while
another member's logs have it, and a restore takes it from there.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from logkeep.zookeeper.backup.round_rules import RoundHole

Runs = Mapping[str, Sequence[tuple[int, int]]]
"""Per member, first and last of runs of zxids."""
ASK_ANOTHER: Final = "another member, or an earlier backup, may have these transactions: back that up too"
"""The remedy where nobody has them."""


@dataclass(frozen=True)
class Elsewhere:
    """What the other members hold. Made of nothing, nobody else was asked."""

    runs: Runs = field(default_factory=dict)

    def holders(self, hole: RoundHole) -> tuple[str, ...]:
        """Those who together hold all of it, by name; nobody if anything is missing."""
        touching = [
            (max(first, hole.first), min(last, hole.last), name)
            for name, runs in self.runs.items()
            for first, last in runs
            if first <= hole.last and last >= hole.first
        ]
        reached = hole.first - 1
        for first, last, _ in sorted(touching):
            if first > reached + 1:
                break
            reached = max(reached, last)
        return tuple(sorted({name for *_, name in touching})) if reached >= hole.last else ()


def elsewhere(name: str, parts: Iterable[Runs]) -> Elsewhere:
    """For the member of this name: all that is held of the others, from what is archived and what is new."""
    found: dict[str, list[tuple[int, int]]] = {}
    for part in parts:
        for other, runs in part.items():
            if other != name:
                found.setdefault(other, []).extend(runs)
    return Elsewhere(found)


def who(holders: Sequence[str]) -> str:
    """For people."""
    return f"member {holders[0]} has them" if len(holders) == 1 else f"members {', '.join(holders)} have them"
