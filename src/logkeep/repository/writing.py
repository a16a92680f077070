"""Changing a source: hold the lease, read the chain, commit.

Everything that changes a source happens inside `writing(...)`. Leaving it, also by an error, gives the lease back with
the head that was reached. A killed process gives nothing back; the next holder takes over.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from logkeep.errors import LeaseLost, StoreError
from logkeep.model.time import Clock, TokenSource
from logkeep.repository import layout
from logkeep.repository.actions import Action
from logkeep.repository.chain import CHECKPOINT_EVERY, Place, append, read_chain, write_checkpoint
from logkeep.repository.fold import Folded
from logkeep.repository.lease import DEFAULT_TTL, Head, Lease, acquire, check_head, kept
from logkeep.repository.owner import this_process


class Writing:
    """The right to change one source, while it lasts."""

    def __init__(self, place: Place, lease: Lease, folded: Folded, clock: Clock, tokens: TokenSource) -> None:
        self.place, self.lease, self.folded = place, lease, folded
        self.clock, self.tokens = clock, tokens

    @property
    def run(self) -> str:
        return self.lease.run

    def commit(self, action: Action) -> Folded:
        """Commit one action. Raises LeaseLost or CommitConflict: then nothing happened, and nothing may be assumed."""
        self.lease.confirm()
        self.folded = append(self.place, self.folded, action, run=self.run, nonce=self.tokens(), now=self.clock())
        if self.folded.generation % CHECKPOINT_EVERY == 0:
            self._checkpoint()
        return self.folded

    def _checkpoint(self) -> None:
        try:
            write_checkpoint(self.place, self.folded)
        except StoreError:
            return  # the commit stands; a cache that could not be written is made by the next one, or by repair


@contextmanager
def writing(
    place: Place, operation: str, clock: Clock, tokens: TokenSource, ttl: timedelta = DEFAULT_TTL
) -> Iterator[Writing]:
    """Take the lease, read the chain, run the body, give the lease back."""
    lease = acquire(place, this_process(tokens()), operation, clock, ttl)
    head = lease.seen
    with kept(lease, ttl):
        try:
            folded = read_chain(place)
            check_head(folded, lease.seen, layout.commits(place.source))
            session = Writing(place, lease, folded, clock, tokens)
            try:
                yield session
            finally:
                head = Head(session.folded.generation, session.folded.head)
        finally:
            _give_back(lease, head)


def _give_back(lease: Lease, head: Head) -> None:
    try:
        lease.release(head)
    except (LeaseLost, StoreError):
        return  # somebody else has it, or it runs out by itself; the outcome of the body counts
