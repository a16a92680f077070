"""The actions of commits. The list is closed: a reader that meets another action cannot know what is live."""

from typing import ClassVar, Final

import msgspec

from logkeep.model.ids import StoredId
from logkeep.model.segments import LogName, Position, Sha256, Token
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
    """Of all segments that restore this backup."""
    new_bytes: int
    """Of the segments that this run added."""
    warnings: int = 0
    tags: tuple[str, ...] = ()
    group: tuple[str, ...] = ()
    """Sources that took part under the same id; empty for a single source."""


class BackupAction(msgspec.Struct, frozen=True, tag="backup", tag_field="kind", forbid_unknown_fields=True):
    id: StoredId
    manifest: ObjectRef
    summary: Summary


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


class ReplaceAction(msgspec.Struct, frozen=True, tag="replace", tag_field="kind", forbid_unknown_fields=True):
    """Other objects hold the same plain bytes for the same positions: segments were merged, or repaired."""

    parts: tuple[PartReplacement, ...]
    proof: str
    """How the equality was proven, for users and for `verify`."""
    keep_old: bool = False
    """The objects of the old parts stay: a repair never destroys evidence."""


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
    """How many."""


class BuryAction(msgspec.Struct, frozen=True, tag="bury", tag_field="kind", forbid_unknown_fields=True):
    """This backup and all later ones leave these archived records out: their keys were deleted at the source."""

    first: StoredId
    logs: tuple[BuriedLog, ...]
    proof: str
    """How that was found, for users and for `verify`."""


class JoinedBurial(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One object with the offsets of several burials of a log, which no kept backup can distinguish."""

    first: StoredId
    """The greatest of theirs."""
    buried: BuriedLog
    instead_of: tuple[Token, ...]
    """Their objects."""


class JoinBurialsAction(msgspec.Struct, frozen=True, tag="join-burials", tag_field="kind", forbid_unknown_fields=True):
    """The same offsets are buried for the same backups, by fewer objects."""

    logs: tuple[JoinedBurial, ...]


PlainAction = (
    BackupAction
    | FailedAction
    | DeleteAction
    | HoldAction
    | ReleaseAction
    | ReplaceAction
    | CheckpointAction
    | BuryAction
    | JoinBurialsAction
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


def version_for(action: Action) -> int:
    """The version of the commit of an action."""
    every = (action, *(each.action for each in action.replayed)) if isinstance(action, RepairAction) else (action,)
    return WITH_BURIAL if any(isinstance(each, BuryAction | JoinBurialsAction) for each in every) else 1


class Commit(SourceDocument, frozen=True, kw_only=True, tag="commit"):
    """One link of the chain."""

    limit: ClassVar[int] = 64 * MIB
    """Large enough for a repair; every other commit is small."""
    newest: ClassVar[int] = WITH_BURIAL

    generation: Position
    previous: str
    """The seal of the commit before, empty for the first."""
    run: str
    nonce: str
    """Makes the bytes of every attempt different, so that reading a commit back shows whose it is."""
    time: str
    action: Action
