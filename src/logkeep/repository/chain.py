"""Reading and extending the commit chain of one source.

Reading starts at the newest checkpoint that fits its commit and follows the links to the end. Extending is one
put-if-absent: exactly one of two racing writers wins a generation, and the loser is told. Nothing here retries.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime

from logkeep.errors import AlreadyExists, CommitConflict, Damaged, FormatTooNew, ObjectMissing
from logkeep.model.time import rfc3339
from logkeep.repository import layout
from logkeep.repository.actions import Action, Commit
from logkeep.repository.documents import open_in_place, read, seal, seal_of
from logkeep.repository.fold import Checkpoint, Folded, Folding
from logkeep.store.base import Store

CHECKPOINT_EVERY = 64
_PARALLEL_READS = 16


@dataclass(frozen=True)
class Place:
    """Where a chain lives: store, repository id, source."""

    store: Store
    repository: str
    source: str


def read_chain(place: Place) -> Folded:
    """The meaning of the whole chain as it stands now. Raises Damaged when a link is missing or does not fit."""
    return follow(place, _best_checkpoint(place))


def follow(place: Place, start: Folded) -> Folded:
    """Fold the commits after `start`."""
    folding = Folding(start)
    after = layout.commit(place.source, start.generation) if start.generation else ""
    names = [i.name for i in place.store.list(layout.commits(place.source), after) if layout.placed(i.name)]
    for name, data in zip(names, _get_all(place.store, names), strict=True):
        commit = open_commit(place, name, data)
        folding.apply(commit, seal_of(data), name)
    return folding.result()


def open_commit(place: Place, name: str, data: bytes) -> Commit:
    """Open a commit and check that it lies where it belongs."""
    commit = open_in_place(data, name, Commit, place.repository)
    if commit.source != place.source or layout.commit(place.source, commit.generation) != name:
        raise Damaged("the commit belongs to another place", subject=name)
    return commit


def append(place: Place, folded: Folded, action: Action, *, run: str, nonce: str, now: datetime) -> Folded:
    """Commit one action after `folded` and return the chain with it.

    Raises CommitConflict when the generation is taken by somebody else, and Damaged before anything is written when
    the action is impossible here.
    """
    commit = Commit(
        repository=place.repository,
        source=place.source,
        generation=folded.generation + 1,
        previous=folded.head,
        run=run,
        nonce=nonce,
        time=rfc3339(now),
        action=action,
    )
    data, name = seal(commit), layout.commit(place.source, commit.generation)
    folding = Folding(folded)
    folding.apply(commit, seal_of(data), name)
    _put_once(place.store, name, data)
    _confirm(place.store, name, data)
    return folding.result()


def _put_once(store: Store, name: str, data: bytes) -> None:
    try:
        store.put_new(name, data)
    except AlreadyExists as error:
        if store.get(name, Commit.limit) != data:
            raise CommitConflict("another run committed this generation first", subject=name) from error


def _confirm(store: Store, name: str, data: bytes) -> None:
    """What was acknowledged must be what readers see; a store that lost or changed it must not look like success."""
    try:
        seen = store.get(name, Commit.limit)
    except ObjectMissing as error:
        raise CommitConflict("the store acknowledged the commit and does not have it", subject=name) from error
    if seen != data:
        raise CommitConflict("the store has another commit than the one it acknowledged", subject=name)


def write_checkpoint(place: Place, folded: Folded) -> None:
    """Store the folded chain beside it. One that exists already is as good: checkpoints of a generation are equal."""
    data = seal(Checkpoint(repository=place.repository, source=place.source, folded=folded))
    try:
        place.store.put_new(layout.checkpoint(place.source, folded.generation), data)
    except AlreadyExists:
        return


def checkpoint_generations(place: Place) -> list[int]:
    """Generations that have a checkpoint, oldest first."""
    placed = (layout.placed(i.name) for i in place.store.list(layout.checkpoints(place.source)))
    return [p.number for p in placed if p]


def read_checkpoint(place: Place, generation: int) -> Folded:
    """A checkpoint that fits the commit it was made from. Raises Damaged, FormatTooNew or ObjectMissing."""
    name = layout.checkpoint(place.source, generation)
    checkpoint = read(place.store, name, Checkpoint, place.repository)
    if checkpoint.source != place.source or checkpoint.folded.generation != generation:
        raise Damaged("the checkpoint belongs to another place", subject=name)
    anchor = layout.commit(place.source, generation)
    data = place.store.get(anchor, Commit.limit)
    open_commit(place, anchor, data)
    if seal_of(data) != checkpoint.folded.head:
        raise Damaged("the checkpoint was made from another chain", subject=name)
    return checkpoint.folded


def _best_checkpoint(place: Place) -> Folded:
    for generation in reversed(checkpoint_generations(place)):
        try:
            return read_checkpoint(place, generation)
        except (Damaged, ObjectMissing, FormatTooNew):
            continue  # a cache never decides: an older one, or the chain from its first commit, tells the same
    return Folded()


def _get_all(store: Store, names: Sequence[str]) -> list[bytes]:
    """Read many small objects, in order, a few at a time: 64 round trips one by one would be felt on a far store."""
    if len(names) <= 2:
        return [store.get(n, Commit.limit) for n in names]
    with ThreadPoolExecutor(_PARALLEL_READS) as pool:
        return list(pool.map(lambda n: store.get(n, Commit.limit), names))
