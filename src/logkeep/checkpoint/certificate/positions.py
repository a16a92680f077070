"""What a backup stores of its cut besides logs: positions of participants, messages in transit, cuts of other systems.

An application that consumes, processes and produces on Kafka has three positions for each log: `processed` (P), where
the reading task was when it took the checkpoint; `before` (B), the end of the log before the first marker was sent;
`after` (E), its end once every task had its checkpoint. `[start, max(P, B))` belongs to the cut; records up to E whose
source lies before its own P are in transit, and are appended again by a restore.
"""

from typing import Annotated, ClassVar, Final

import msgspec

from logkeep.errors import Damaged
from logkeep.model.ids import StoredId
from logkeep.model.segments import Position
from logkeep.repository.backups.attachments import read_attachment
from logkeep.repository.backups.manifest import LARGEST_ATTACHMENT, Manifest
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.documents import SourceDocument

ROLE: Final = "cut-positions"


class CutLogPositions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """P, B and E of one log, and the ranges `[first, after)` of its offsets that are in transit."""

    topic: str
    partition: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
    start: Position
    processed: Position
    before: Position
    after: Position
    in_transit: tuple[tuple[Position, Position], ...] = ()

    @property
    def kept_end(self) -> int:
        return max(self.processed, self.before)


class CutPositions(SourceDocument, frozen=True, kw_only=True, tag="cut-positions"):
    limit: ClassVar[int] = LARGEST_ATTACHMENT

    id: StoredId
    application: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{32}$")]
    history: Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]
    transactional: bool = True
    logs: tuple[CutLogPositions, ...] = ()
    members: tuple[tuple[str, Position], ...] = ()
    """The cuts of other systems, by the name under which the application reports their positions."""
    declared: tuple[str, ...] = ()
    """Channels that are not observed."""


def read_positions(place: SourceRef, manifest: Manifest) -> CutPositions | None:
    """None for a backup without any. Raises Damaged."""
    found = read_attachment(place, manifest, ROLE, CutPositions)
    if found is not None and (found.source, found.id) != (place.source, manifest.id):
        raise Damaged("the positions belong to another backup", subject=f"backup {manifest.id} of {place.source}")
    return found
