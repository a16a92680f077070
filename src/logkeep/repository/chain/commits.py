"""Reading and extending the commit chain of one source.

Reading starts at the newest pinned checkpoint and follows the commits to the last one that is listed; a missing commit
or one that does not fit is damage, unless a later repair accepted it. Extending is one put-if-absent: exactly one of
two racing writers wins a generation, and the other gets CommitConflict. Nothing here retries.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime

from logkeep.errors import AlreadyExists, CommitConflict, Damaged, FormatTooNew, ObjectMissing
from logkeep.model.time import rfc3339
from logkeep.repository.chain import layout
from logkeep.repository.chain.actions import (
    WITH_BURIAL,
    Action,
    CheckpointAction,
    Commit,
    ObjectRef,
    PartRef,
    RepairAction,
    ReplaceAction,
    version_for,
)
from logkeep.repository.chain.documents import open_in_place, put_own, seal, seal_of
from logkeep.repository.chain.fold import Checkpoint, Folded, Folding
from logkeep.store.base import Store

CHECKPOINT_EVERY = 64
_PARALLEL_READS = 16


@dataclass(frozen=True)
class SourceRef:
    """One source of a repository: store, repository id, name."""

    store: Store
    repository: str
    source: str


@dataclass(frozen=True)
class Link:
    """One commit object as it was read, not checked yet."""

    name: str
    data: bytes


def read_chain(place: SourceRef) -> Folded:
    """The current state of the source. Raises Damaged if a commit is missing or does not fit.

    A checkpoint may be of a branch that a repair discarded: if the commits after it do not fit, the whole chain is
    read.
    """
    start = _best_checkpoint(place)
    try:
        return follow(place, start)
    except Damaged:
        if start == Folded():
            raise
        return read_whole_chain(place)


def read_whole_chain(place: SourceRef) -> Folded:
    """The same without any checkpoint, for garbage collection and `verify`."""
    return follow(place, Folded())


def follow(place: SourceRef, start: Folded, until: int | None = None) -> Folded:
    """Fold the commits after `start`, to the end or up to a generation. Raises Damaged if they do not fit."""
    links = read_links(place, start.generation)
    if until is not None:
        links = [link for link in links if link.name <= layout.commit(place.source, until)]
    walked = walk(place, start, links)
    if walked.broken is not None:
        raise walked.broken
    return walked.folded


@dataclass(frozen=True)
class WalkedChain:
    """How many commits could be folded."""

    folded: Folded
    taken: int
    """How many commits were folded, or discarded by an accepted repair."""
    broken: Damaged | None
    """Why the next one could not be folded."""


def walk(place: SourceRef, start: Folded, links: Sequence[Link]) -> WalkedChain:
    """Fold commits in order, as far as possible, without those that an accepted repair discarded.

    A repair wins over commits that it discarded even if they have reappeared: both cannot be true.
    """
    opened = [_open_or_damage(place, link) for link in links]
    folding = Folding(start)
    numbers = [placed.number for link in links if (placed := layout.placed(link.name))]
    for at in _without_discarded(opened, numbers):
        commit = opened[at]
        try:
            if isinstance(commit, Damaged):
                raise commit
            folding.apply(commit, seal_of(links[at].data), links[at].name)
        except Damaged as broken:
            return WalkedChain(folding.result(), at, broken)
    return WalkedChain(folding.result(), len(links), None)


def _open_or_damage(place: SourceRef, link: Link) -> Commit | Damaged:
    try:
        return open_commit(place, link)
    except Damaged as damage:
        return damage


def _without_discarded(opened: Sequence[Commit | Damaged], numbers: Sequence[int]) -> list[int]:
    """The indexes of valid commits: from the end, each repair refers to the commit it follows."""
    places: list[int] = []
    floor = None  # commits above this generation, and below the repair that set it, were discarded
    for at in range(len(opened) - 1, -1, -1):
        commit = opened[at]
        if floor is not None and numbers[at] > floor:
            continue
        places.append(at)
        if isinstance(commit, Commit) and isinstance(commit.action, RepairAction):
            floor = commit.action.after
    return places[::-1]


def replacements_ever(place: SourceRef) -> dict[str, tuple[PartRef, ...]]:
    """Every part that was ever replaced, and all parts that ever replaced it."""
    ever: dict[str, tuple[PartRef, ...]] = {}
    for link in read_links(place, 0):
        try:
            action = open_commit(place, link).action
        except Damaged:
            continue  # discarded by a repair; callers that need an intact chain have read it before
        if isinstance(action, ReplaceAction):
            news = {p.old: p.new for p in action.parts}
            for old, served in ever.items():
                onward = (new for ref in served for new in news.get(ref.token, ()))
                ever[old] = tuple(dict.fromkeys((*served, *onward)))
            ever |= news
    return ever


def read_links(place: SourceRef, after_generation: int) -> list[Link]:
    """All commit objects after a generation, in order, not opened."""
    after = layout.commit(place.source, after_generation) if after_generation else ""
    names = [i.name for i in place.store.list(layout.commits(place.source), after) if layout.placed(i.name)]
    return [Link(n, d) for n, d in zip(names, _get_all(place.store, names), strict=True)]


def open_commit(place: SourceRef, link: Link) -> Commit:
    """Open a commit and check that its name is right."""
    commit = open_in_place(link.data, link.name, Commit, place.repository)
    if commit.source != place.source or layout.commit(place.source, commit.generation) != link.name:
        raise Damaged("the commit belongs to another name", subject=link.name)
    return commit


def append(
    place: SourceRef, folded: Folded, action: Action, *, run: str, nonce: str, now: datetime, skip_to: int | None = None
) -> Folded:
    """Commit one action after `folded` and return the chain with it, as read from the store afterwards.

    Raises CommitConflict if another run committed this generation, and Damaged, before anything is written, if the
    action is impossible here. Only a repair may `skip_to` a later generation.
    """
    commit = Commit(
        version=version_for(action),
        repository=place.repository,
        source=place.source,
        generation=skip_to or folded.generation + 1,
        previous=folded.head,
        run=run,
        nonce=nonce,
        time=rfc3339(now),
        action=action,
    )
    data, name = seal(commit), layout.commit(place.source, commit.generation)
    folding = Folding(folded)
    folding.apply(commit, seal_of(data), name)
    try:
        put_own(place.store, name, data)
    except AlreadyExists as error:
        raise CommitConflict("another run committed this generation first", subject=name) from error
    _confirm(place.store, name, data)
    return follow(place, folding.result())


def _confirm(store: Store, name: str, data: bytes) -> None:
    """Check that readers see what the store acknowledged: a lost or changed commit must not look like success."""
    try:
        seen = store.get(name, Commit.limit)
    except ObjectMissing as error:
        raise CommitConflict("the store acknowledged the commit but does not have it", subject=name) from error
    if seen != data:
        raise CommitConflict("the store has another commit than the one it acknowledged", subject=name)


def put_checkpoint(place: SourceRef, folded: Folded, token: str) -> ObjectRef:
    """Store the folded chain. It is valid once a commit pins it."""
    version = WITH_BURIAL if folded.needs_version_2 else 1
    data = seal(Checkpoint(version=version, repository=place.repository, source=place.source, folded=folded))
    place.store.put_new(layout.checkpoint(place.source, folded.generation, token), data)
    return ObjectRef(token, len(data), seal_of(data))


def checkpoints(place: SourceRef) -> list[tuple[layout.NameSuffix, str]]:
    """All checkpoint objects, oldest first: parsed names and names."""
    found = ((layout.placed(i.name), i.name) for i in place.store.list(layout.checkpoints(place.source)))
    return [(placed, name) for placed, name in found if placed]


def read_checkpoint(place: SourceRef, placed: layout.NameSuffix) -> Folded:
    """A checkpoint that the commit after it pins. Raises Damaged, FormatTooNew or ObjectMissing."""
    name = layout.checkpoint(place.source, placed.number, placed.token)
    pin_name = layout.commit(place.source, placed.number + 1)
    pin = open_commit(place, Link(pin_name, place.store.get(pin_name, Commit.limit))).action
    data = place.store.get(name, Checkpoint.limit)
    if not isinstance(pin, CheckpointAction) or pin.folded != ObjectRef(placed.token, len(data), seal_of(data)):
        raise Damaged("no commit pins this checkpoint", subject=name)
    checkpoint = open_in_place(data, name, Checkpoint, place.repository)
    if checkpoint.source != place.source or checkpoint.folded.generation != placed.number:
        raise Damaged("the checkpoint belongs to another name", subject=name)
    return checkpoint.folded


def _best_checkpoint(place: SourceRef) -> Folded:
    for placed, _ in reversed(checkpoints(place)):
        try:
            return read_checkpoint(place, placed)
        except (Damaged, ObjectMissing, FormatTooNew):
            continue  # only a cache: an older one, or the whole chain, gives the same
    return Folded()


def _get_all(store: Store, names: Sequence[str]) -> list[bytes]:
    """Read many small objects, in order, in parallel: 64 sequential requests are slow on a remote store."""
    if len(names) <= 2:
        return [store.get(n, Commit.limit) for n in names]
    with ThreadPoolExecutor(_PARALLEL_READS) as pool:
        return list(pool.map(lambda n: store.get(n, Commit.limit), names))
