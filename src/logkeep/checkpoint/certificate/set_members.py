"""The other members of a backup set, as the certificate of its application needs them: where their cuts end.

An application reports positions of other systems (`context.external`) under the name of their source: `zk-prod` for the
last zxid, `kafka-prod/orders/3` for the last offset of a partition.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from logkeep.errors import Damaged
from logkeep.repository.backups.manifest import Manifest
from logkeep.repository.backups.source import read_manifest, source_names
from logkeep.repository.chain.commits import SourceRef, read_chain


@dataclass(frozen=True)
class ExternalCut:
    """The last position that a member's backup has, under one name."""

    position: int
    counter_bits: int = 63
    """The lower bits count; those above are an epoch. A zxid has 32."""

    def unordered_after(self, seen: int) -> int | None:
        """How many positions of the member come after the one that was seen; None if another epoch began between."""
        if seen >> self.counter_bits != self.position >> self.counter_bits:
            return None
        return self.position - seen


CutsOf = Callable[[SourceRef, Manifest], Mapping[str, ExternalCut]]
"""The ends of a backup of any kind, by the names under which applications report them."""


@dataclass(frozen=True)
class SetMember:
    """A source that belongs to the set, besides the application."""

    source: str
    kind: str = ""
    started: str | None = None
    cuts: Mapping[str, ExternalCut] = field(default_factory=dict)
    problem: str = ""
    """Why it has no cut."""


def source_of(name: str) -> str:
    """The source that an external position is about."""
    return name.partition("/")[0]


def read_members(
    place: SourceRef, manifest: Manifest, reported: Collection[str], cuts_of: CutsOf
) -> tuple[SetMember, ...]:
    """The members that the backup names; if it names none, the sources of which the application reports positions."""
    named = manifest.group or sorted({*map(source_of, reported)} & {*source_names(place.store)})
    others = (replace(place, source=name) for name in named if name != place.source)
    return tuple(_member(other, manifest.id, cuts_of) for other in others)


def _member(place: SourceRef, backup_id: int, cuts_of: CutsOf) -> SetMember:
    try:
        entry = read_chain(place).entry(backup_id)
        if entry is None:
            return SetMember(place.source, problem=f"{place.source} has no completed backup {backup_id}")
        manifest = read_manifest(place, entry)
        return SetMember(place.source, manifest.kind, manifest.started, cuts_of(place, manifest))
    except Damaged as damage:
        return SetMember(place.source, problem=f"backup {backup_id} of {place.source} cannot be read: {damage.what}")
