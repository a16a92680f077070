"""Changing a source: hold the lease, read the chain, commit.

Everything that changes a source happens inside `writing(...)`, except pins (`pin` below), which need no lease. Leaving
it, also by an error, gives the lease back with the head that was reached. A killed process gives nothing back; the
next holder takes over.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta

from logkeep.errors import CommitConflict, Damaged, LeaseLost, Locked, StoreError
from logkeep.model.time import Clock, TokenSource
from logkeep.repository.chain.actions import Action, CheckpointAction, DeleteAction, HoldAction, ReleaseAction
from logkeep.repository.chain.commits import (
    CHECKPOINT_EVERY,
    SourceRef,
    append,
    follow,
    open_commit,
    put_checkpoint,
    read_chain,
    read_links,
)
from logkeep.repository.chain.fold import Folded
from logkeep.repository.chain.lease import DEFAULT_TTL, Head, Lease, acquire, check_seen, kept, note_head, read_lease
from logkeep.repository.chain.owner import this_process

_PIN_ATTEMPTS = 20


class Writing:
    """The right to change one source, while it lasts."""

    def __init__(self, place: SourceRef, lease: Lease, folded: Folded, clock: Clock, tokens: TokenSource) -> None:
        self.place, self.lease, self.folded = place, lease, folded
        self.clock, self.tokens = clock, tokens

    @property
    def run(self) -> str:
        return self.lease.run

    def commit(self, action: Action) -> Folded:
        """Commit one action. Raises LeaseLost or CommitConflict: then nothing happened, and nothing may be assumed."""
        self._commit(action)
        if self.folded.generation % CHECKPOINT_EVERY == CHECKPOINT_EVERY - 1:
            try:
                self.fence("regular checkpoint")
            except (StoreError, Locked):
                return self.folded  # the commit stands; a cache that could not be written is made by the next one
        return self.folded

    def fence(self, reason: str) -> None:
        """Move the generation on, with a checkpoint: whoever read the chain before can no longer commit."""
        self.lease.confirm()
        ref = put_checkpoint(self.place, self.folded, self.tokens())
        self._commit(CheckpointAction(ref, reason))

    def _commit(self, action: Action) -> None:
        while True:
            self.lease.confirm()
            try:
                self.folded = append(
                    self.place, self.folded, action, run=self.run, nonce=self.tokens(), now=self.clock()
                )
            except CommitConflict:
                if isinstance(action, DeleteAction | CheckpointAction) or not self._only_pins_came_between():
                    raise
            else:
                self._remember()
                return

    def _remember(self) -> None:
        """Let the lease guard the new head. The commit stands, whatever becomes of this."""
        try:
            self.lease.remember(Head(self.folded.generation, self.folded.head))
        except (LeaseLost, StoreError):
            return  # the next step that needs the lease finds out

    def catch_up(self) -> None:
        """Take in pins that were made meanwhile. Raises CommitConflict when anything else was."""
        if read_links(self.place, self.folded.generation) and not self._only_pins_came_between():
            raise CommitConflict("another run has committed meanwhile", subject=self.place.source)

    def _only_pins_came_between(self) -> bool:
        """A user may pin a backup while a long run holds the lease; that must not cost the run its commit.

        Deletions decide anew instead, and a checkpoint must fold what it pins. Anything else that came between
        means that somebody took our place.
        """
        actions = [open_commit(self.place, link).action for link in read_links(self.place, self.folded.generation)]
        if not actions or not all(isinstance(a, HoldAction | ReleaseAction) for a in actions):
            return False
        self.folded = follow(self.place, self.folded)
        return True


@contextmanager
def writing(
    place: SourceRef, operation: str, clock: Clock, tokens: TokenSource, ttl: timedelta = DEFAULT_TTL
) -> Iterator[Writing]:
    """Take the lease, read the chain, run the body, give the lease back."""
    lease = acquire(place, this_process(tokens()), operation, clock, ttl)
    with kept(lease, ttl):
        try:
            folded = read_chain(place)
            check_seen(place, folded, lease.seen)
            yield Writing(place, lease, folded, clock, tokens)
        finally:
            _give_back(lease)


def _give_back(lease: Lease) -> None:
    try:
        lease.release()
    except (LeaseLost, StoreError):
        return  # somebody else has it, or it runs out by itself; the outcome of the body counts


def pin(place: SourceRef, action: HoldAction | ReleaseAction, clock: Clock, tokens: TokenSource) -> Folded:
    """Pin or unpin a backup. Needs no lease: it must work while a long backup runs, right before tonight's prune."""
    run = tokens()
    for _ in range(_PIN_ATTEMPTS):
        folded = _unshortened(place)
        try:
            pinned = append(place, folded, action, run=run, nonce=tokens(), now=clock())
        except CommitConflict:
            continue  # another run was faster; the pin is decided anew on what it left
        with suppress(StoreError, Damaged):
            note_head(place, Head(pinned.generation, pinned.head))
        return pinned
    raise CommitConflict("the chain moves too fast to pin a backup now", subject=place.source)


def _unshortened(place: SourceRef) -> Folded:
    """The chain, and Damaged when it ends before a head that a lease holder saw: a pin must not paper over a loss."""
    found = read_lease(place)  # before the chain: what is committed in between only makes the chain longer
    folded = read_chain(place)
    if found is not None:
        check_seen(place, folded, found[0].head)
    return folded
