"""Which other members have archived the transactions that one member lacks. Pure.

A member that its leader synchronised by a snapshot lacks what happened before. Nothing is lost as long as another
member's logs have it: a restore takes it from there.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from logkeep.zookeeper.backup.round_rules import RoundHole
from logkeep.zookeeper.model.spans import Span, outside, overlap

Runs = Mapping[str, Sequence[Span]]
"""Per member, first and last of runs of zxids."""
ASK_ANOTHER: Final = "another member, or an earlier backup, may have these transactions: back that up too"
"""The remedy if no member has them."""


@dataclass(frozen=True)
class OtherMembers:
    """Archived runs of the other members; empty if there are none."""

    runs: Runs = field(default_factory=dict)

    def holders(self, hole: RoundHole) -> tuple[str, ...]:
        """Names of the members that together have all of it; empty if anything is missing."""
        wanted = (hole.first, hole.last)
        touching = [(name, run) for name, runs in self.runs.items() for run in runs if overlap(run, wanted)]
        if outside([wanted], [run for _, run in touching]):
            return ()
        return tuple(sorted({name for name, _ in touching}))


def other_members_of(name: str, parts: Iterable[Runs]) -> OtherMembers:
    """For the member of this name: what is archived of the others, by earlier backups and by this one."""
    found: dict[str, list[Span]] = {}
    for part in parts:
        for other, runs in part.items():
            if other != name:
                found.setdefault(other, []).extend(runs)
    return OtherMembers(found)


def holders_text(holders: Sequence[str]) -> str:
    return f"member {holders[0]} has them" if len(holders) == 1 else f"members {', '.join(holders)} have them"
