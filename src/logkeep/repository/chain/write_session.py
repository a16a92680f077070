"""Write sessions: hold the lease of a source, read the chain, commit.

Everything that changes a source happens inside `writing(...)`, except pins (`pin` below), which need no lease. Leaving
this block, also by an error, releases the lease with the head that was reached. A killed process releases nothing; the
next holder takes the lease when it has expired.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta

from logkeep.errors import CommitConflict, Damaged, LeaseLost, Locked, StoreError
from logkeep.model.time import Clock, TokenSource
from logkeep.repository.chain.actions import (
    Action,
    CheckpointAction,
    DeleteAction,
    HoldAction,
    ReleaseAction,
    TrimAction,
)
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
from logkeep.repository.chain.lease import DEFAULT_TTL, Head, Lease, acquire, check_seen, note_head, read_lease, renewed
from logkeep.repository.chain.owner import this_process

_PIN_ATTEMPTS = 20
BRIEF_TTL = timedelta(minutes=2)


class Writing:
    """The right to change one source, while the lease lasts."""

    def __init__(self, place: SourceRef, lease: Lease, folded: Folded, clock: Clock, tokens: TokenSource) -> None:
        self.place, self.lease, self.folded = place, lease, folded
        self.clock, self.tokens = clock, tokens

    @property
    def run(self) -> str:
        return self.lease.run

    def commit(self, action: Action) -> Folded:
        """Commit one action. Raises LeaseLost or CommitConflict: then nothing was committed."""
        self._commit(action)
        if self.folded.generation % CHECKPOINT_EVERY == CHECKPOINT_EVERY - 1:
            try:
                self.fence("regular checkpoint")
            except (StoreError, Locked):
                return self.folded  # the commit is valid; the next run writes the checkpoint
        return self.folded

    def fence(self, reason: str) -> None:
        """Advance the generation with a checkpoint: a writer that read the chain before can no longer commit."""
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
                planned_again = isinstance(action, DeleteAction | TrimAction | CheckpointAction)
                if planned_again or not self._only_pins_were_committed():
                    raise
            else:
                self._remember()
                return

    def _remember(self) -> None:
        """Store the new head in the lease. The commit is valid even if this fails."""
        try:
            self.lease.remember(Head(self.folded.generation, self.folded.head))
        except (LeaseLost, StoreError):
            return  # the next step that needs the lease reports it

    def catch_up(self) -> None:
        """Read pins that were committed meanwhile. Raises CommitConflict if anything else was."""
        if read_links(self.place, self.folded.generation) and not self._only_pins_were_committed():
            raise CommitConflict("another run has committed meanwhile", subject=self.place.source)

    def _only_pins_were_committed(self) -> bool:
        """A user may pin a backup while a long run holds the lease; the run must still be able to commit.

        Deletions and trims are planned again instead, and a checkpoint must include every commit before it. Any other
        commit means that another run took the lease.
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
    """Acquire the lease, read the chain, run the body, release the lease."""
    lease = acquire(place, this_process(tokens()), operation, clock, ttl)
    with renewed(lease, ttl):
        try:
            folded = read_chain(place)
            check_seen(place, folded, lease.seen)
            yield Writing(place, lease, folded, clock, tokens)
        finally:
            _release(lease)


@contextmanager
def brief_writing(place: SourceRef, operation: str, clock: Clock, tokens: TokenSource) -> Iterator[Writing]:
    """The same for a few store calls inside a generator of steps: no thread renews the lease.

    A generator that is dropped releases nothing, as if its process had been killed.
    """
    lease = acquire(place, this_process(tokens()), operation, clock, BRIEF_TTL)
    try:
        folded = read_chain(place)
        check_seen(place, folded, lease.seen)
        yield Writing(place, lease, folded, clock, tokens)
    except Exception:
        _release(lease)
        raise
    _release(lease)


def _release(lease: Lease) -> None:
    try:
        lease.release()
    except (LeaseLost, StoreError):
        return  # another run has it, or it will expire


def pin(place: SourceRef, action: HoldAction | ReleaseAction, clock: Clock, tokens: TokenSource) -> Folded:
    """Pin or unpin a backup. Needs no lease: it must work while a long backup runs."""
    run = tokens()
    for _ in range(_PIN_ATTEMPTS):
        folded = _checked_chain(place)
        try:
            pinned = append(place, folded, action, run=run, nonce=tokens(), now=clock())
        except CommitConflict:
            continue  # another run was faster; try again on the new chain
        with suppress(StoreError, Damaged):
            note_head(place, Head(pinned.generation, pinned.head))
        return pinned
    raise CommitConflict("other runs keep committing: the backup could not be pinned", subject=place.source)


def _checked_chain(place: SourceRef) -> Folded:
    """The chain. Raises Damaged if it ends before a head that a lease holder saw: a pin must not hide a loss."""
    found = read_lease(place)  # before the chain: a commit in between only makes the chain longer
    folded = read_chain(place)
    if found is not None:
        check_seen(place, folded, found[0].head)
    return folded
