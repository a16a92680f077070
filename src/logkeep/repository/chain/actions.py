"""The actions of commits. The list is closed: a reader that meets another action cannot know what is live."""

from typing import ClassVar, Final

import msgspec

from logkeep.model.ids import StoredId
from logkeep.model.segments import Collection, LogName, Position, Sha256, Token
from logkeep.repository.chain.documents import MIB, SourceDocument

FIRST_GENERATION = 1
NO_PREDECESSOR = ""


class ObjectRef(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Refers to an object by its token and pins its content; the referring document determines its name."""

    token: Token
    size: Position
    sha256: Sha256


class PartRef(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of segment rows, see `parts`."""

    token: Token
    size: Position
    sha256: Sha256
    rows: Position


class Summary(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `list` shows of a backup, so that it never has to open a manifest."""

    started: str
    logs: int
    segments: int
    records: int
    stored_bytes: int
    """The size of all segments that this backup needs."""
    new_bytes: int
    """The size of the segments that this run added."""
    warnings: int = 0
    tags: tuple[str, ...] = ()
    group: tuple[str, ...] = ()
    """Sources that took part under the same id; empty for a single source."""


class BackupAction(msgspec.Struct, frozen=True, tag="backup", tag_field="kind", forbid_unknown_fields=True):
    id: StoredId
    manifest: ObjectRef
    summary: Summary
    switched: tuple[Token, ...] | msgspec.UnsetType = msgspec.UNSET
    """Catch-ups that became the active generation of their topics with this backup; absent if there are none."""


class FailedAction(msgspec.Struct, frozen=True, tag="failed", tag_field="kind", forbid_unknown_fields=True):
    id: StoredId
    reason: str


class DeleteAction(msgspec.Struct, frozen=True, tag="delete", tag_field="kind", forbid_unknown_fields=True):
    ids: tuple[StoredId, ...]
    reason: str


class HoldAction(msgspec.Struct, frozen=True, tag="hold", tag_field="kind", forbid_unknown_fields=True):
    id: StoredId
    reason: str


class ReleaseAction(msgspec.Struct, frozen=True, tag="release", tag_field="kind", forbid_unknown_fields=True):
    id: StoredId


class PartReplacement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Readers of a manifest that names the old part read these instead."""

    old: Token
    new: tuple[PartRef, ...]


class HonouredCut(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The cut of a kept backup, and the latest record of each key in it: the same before and after a fold."""

    id: StoredId
    start: Position
    end: Position
    records: Position
    """How many keys have a latest record, with records that have no key."""
    digest: str


class FoldProof(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One history of one log was folded: records that no kept backup needs are gone."""

    log: LogName
    start: Position
    end: Position
    """Offsets in which only the honoured cuts are restore points."""
    last_id: int
    """The largest id that was decided: a backup up to it that is not honoured cannot be restored any more."""
    cuts: tuple[HonouredCut, ...]
    dropped_tombstones: bool
    dense: bool
    """Whether every offset had its record before: that proved that no deletion was missed."""
    records_before: Position
    records_after: Position
    stored_before: Position
    stored_after: Position
    digest_before: str
    digest_after: str
    """The digests of all records in order, as `verify --level records` computes them, before and after the fold."""


class ReplaceAction(msgspec.Struct, frozen=True, tag="replace", tag_field="kind", forbid_unknown_fields=True):
    """Other objects hold the same plain bytes for the same positions: segments were merged, or repaired.

    With `fold` they hold fewer records, but the latest of each key at every honoured cut.
    """

    parts: tuple[PartReplacement, ...]
    proof: str
    """How the equality was proven, for users and for `verify`."""
    keep_old: bool = False
    """The objects of the old parts stay: a repair never destroys evidence."""
    fold: FoldProof | msgspec.UnsetType = msgspec.UNSET
    """Absent unless a log was folded."""


class CheckpointAction(msgspec.Struct, frozen=True, tag="checkpoint", tag_field="kind", forbid_unknown_fields=True):
    """Pins the folded chain up to the generation before this one, and advances the generation.

    This is a fence: a writer that read the chain before can no longer commit.
    """

    folded: ObjectRef
    reason: str


class BuriedLog(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Offsets of one history of one log; the object has them as runs."""

    log: LogName
    object: ObjectRef
    offsets: Position
    """How many offsets it has."""


class BuryAction(msgspec.Struct, frozen=True, tag="bury", tag_field="kind", forbid_unknown_fields=True):
    """This backup and all later ones leave these archived records out: their keys were deleted at the source."""

    first: StoredId
    logs: tuple[BuriedLog, ...]
    proof: str
    """How that was found, for users and for `verify`."""


class TrimmedTopic(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One history of the logs of one name, and for each partition the first position that stays."""

    collection: Collection
    name: str
    history: str
    below: tuple[tuple[Position, Position], ...]
    """Pairs of a partition and a position."""

    def floors(self) -> dict[LogName, int]:
        return {LogName(self.collection, self.name, self.history, number): below for number, below in self.below}


class TrimmedBackup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one backup lost by a trim."""

    id: StoredId
    segments: Position
    records: Position
    stored_bytes: Position


class TrimAction(msgspec.Struct, frozen=True, tag="trim", tag_field="kind", forbid_unknown_fields=True):
    """Backups before one of them begin later in these logs: their source keeps the positions no longer."""

    before: StoredId
    """The newest good backup; it and all later ones stay as they are."""
    topics: tuple[TrimmedTopic, ...]
    backups: tuple[TrimmedBackup, ...]
    reason: str


class JoinedBurial(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One object with the offsets of several burials of a log, which no kept backup can distinguish."""

    first: StoredId
    """The greatest `first` of the joined burials."""
    buried: BuriedLog
    instead_of: tuple[Token, ...]
    """The tokens of the objects that it replaces."""


class JoinBurialsAction(msgspec.Struct, frozen=True, tag="join-burials", tag_field="kind", forbid_unknown_fields=True):
    """The same offsets are buried for the same backups, by fewer objects."""

    logs: tuple[JoinedBurial, ...]


class GenerationStart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The time from which the age of a topic's active copy is counted."""

    topic: str
    topic_id: str
    began: str
    number: Position = 0
    """The largest number that a catch-up of this topic has had."""


class BegunCatchUp(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A new copy of a topic, written beside the active one."""

    token: Token
    topic: str
    topic_id: str
    number: Position
    """The number of the history that all its logs get."""
    reason: str


class EndedCatchUp(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    token: Token
    reason: str


class GenerationsAction(msgspec.Struct, frozen=True, tag="generations", tag_field="kind", forbid_unknown_fields=True):
    """Catch-ups that begin, and catch-ups that end without becoming active."""

    starts: tuple[GenerationStart, ...] = ()
    begun: tuple[BegunCatchUp, ...] = ()
    ended: tuple[EndedCatchUp, ...] = ()


PlainAction = (
    BackupAction
    | FailedAction
    | DeleteAction
    | HoldAction
    | ReleaseAction
    | ReplaceAction
    | CheckpointAction
    | BuryAction
    | TrimAction
    | JoinBurialsAction
    | GenerationsAction
)


class ReplayedAction(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The action of a commit after a loss, or of a manifest found by listing, with its own time."""

    generation: Position
    time: str
    action: PlainAction


class RepairAction(msgspec.Struct, frozen=True, tag="repair", tag_field="kind", forbid_unknown_fields=True):
    """Continues the chain after commits were lost or damaged. The only action that may skip generations.

    It follows the commit of generation `after`, is above every generation that was ever seen, and discards all commits
    in between, readable or not: what could be saved of them is replayed here.
    """

    after: Position
    replayed: tuple[ReplayedAction, ...]
    reason: str


Action = PlainAction | RepairAction


WITH_BURIAL: Final = 2
"""The version of a commit that buries offsets, and of a checkpoint that has some: an earlier release ends at either."""
WITH_TRIM: Final = 2
"""The same for a commit that trims backups, and for a checkpoint of a source with trimmed ones."""
WITH_FOLD: Final = 2
"""The same for a commit that folds a log, and for a checkpoint of a source with folded ones."""
WITH_GENERATIONS: Final = 2
"""The same for a commit that concerns generations, and for a checkpoint of a source with some."""


def version_for(action: Action) -> int:
    """The version of the commit of an action."""
    every = (action, *(each.action for each in action.replayed)) if isinstance(action, RepairAction) else (action,)
    return max(_version_of(each) for each in every)


def _version_of(action: Action) -> int:
    match action:
        case BuryAction() | JoinBurialsAction():
            return WITH_BURIAL
        case TrimAction():
            return WITH_TRIM
        case ReplaceAction() if action.fold:
            return WITH_FOLD
        case GenerationsAction():
            return WITH_GENERATIONS
        case BackupAction() if action.switched:
            return WITH_GENERATIONS
    return 1


class Commit(SourceDocument, frozen=True, kw_only=True, tag="commit"):
    """One link of the chain."""

    limit: ClassVar[int] = 64 * MIB
    """Large enough for a repair; every other commit is small."""
    newest: ClassVar[int] = max(WITH_BURIAL, WITH_TRIM, WITH_FOLD, WITH_GENERATIONS)

    generation: Position
    previous: str
    """The seal of the commit before, empty for the first."""
    run: str
    nonce: str
    """Makes the bytes of every attempt different, so that reading a commit back shows whose it is."""
    time: str
    action: Action
