"""The conformance suite: checks of every promise of a store.

A check has a slug, a title, what depends on it, and a function that returns None if the promise was kept, or how it was
broken. Tests run all of them at full size; `store probe` runs the same ones, smaller, on the user's store. Everything
happens below one prefix, which is emptied at the end. Checks are independent of each other, so they can run at the same
time; only those of streams run one after the other, because each needs the memory of a few parts.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum

from logkeep.errors import LogkeepError, StoreFull, StoreUnreachable
from logkeep.model.time import Clock
from logkeep.store.base import Store, sweepable
from logkeep.store.conformance import reads, writes
from logkeep.store.conformance.trial import Scale, Trial


class Stake(StrEnum):
    """What depends on a check."""

    COMMITS = "commits"
    """If it fails, a backup could be lost, overwritten, or not found."""
    LEASES = "leases"
    """If it fails, two runs could hold the same lease."""
    CLEANING = "cleaning"
    """If it fails, space cannot be freed."""


@dataclass(frozen=True)
class StoreCheck:
    slug: str
    title: str
    stake: Stake
    run: Callable[[Trial], str | None]


@dataclass(frozen=True)
class CheckOutcome:
    """`problem` is None if the promise was kept."""

    check: StoreCheck
    problem: str | None


_STREAMS = frozenset({"stream", "stream-buffer", "stream-abort"})
CHECKS: tuple[StoreCheck, ...] = (
    StoreCheck(
        "read-after-write", "what was written is read back at once, byte for byte", Stake.COMMITS, writes.read_back
    ),
    StoreCheck("empty-object", "an object may be empty", Stake.COMMITS, writes.empty_object),
    StoreCheck("list-after-write", "what was written is listed at once", Stake.COMMITS, writes.listed_at_once),
    StoreCheck("missing-object", "a missing object is reported as missing", Stake.COMMITS, reads.missing_is_missing),
    StoreCheck("read-limit", "an object larger than allowed is not read", Stake.COMMITS, reads.limit_is_kept),
    StoreCheck("range-read", "a part of an object can be read", Stake.COMMITS, reads.ranges),
    StoreCheck("list-order", "names are listed in order, below their prefix only", Stake.COMMITS, reads.list_in_order),
    StoreCheck("list-after", "a listing can start after a name", Stake.COMMITS, reads.list_after),
    StoreCheck("list-pages", "a long listing is complete", Stake.COMMITS, reads.list_pages),
    StoreCheck("unsafe-names", "unsafe names are refused", Stake.COMMITS, reads.unsafe_names_refused),
    StoreCheck("put-new-refused", "an existing name is not written again", Stake.COMMITS, writes.taken_name_refused),
    StoreCheck("put-new-race", "of many writers of one name exactly one wins", Stake.COMMITS, writes.put_new_race),
    StoreCheck("stream", "a long stream appears whole, and only at its end", Stake.COMMITS, writes.stream),
    StoreCheck(
        "stream-buffer", "a stream's buffer can be used again at once", Stake.COMMITS, writes.stream_buffer_reuse
    ),
    StoreCheck("stream-abort", "an aborted stream leaves nothing visible", Stake.COMMITS, writes.stream_abort),
    StoreCheck("replace-fresh", "an object with this version is replaced", Stake.LEASES, writes.replace_fresh),
    StoreCheck("replace-stale", "an object that has changed is not replaced", Stake.LEASES, writes.replace_stale),
    StoreCheck(
        "replace-race", "of many replacements of one version exactly one wins", Stake.LEASES, writes.replace_race
    ),
    StoreCheck("clock", "the store's clock is right within 3 minutes", Stake.LEASES, reads.clock_drift),
    StoreCheck("delete", "an object can be removed, more than once", Stake.CLEANING, writes.delete_twice),
)


Watch = Callable[[CheckOutcome], None]


def run_checks(
    store: Store,
    prefix: str,
    clock: Clock,
    scale: Scale,
    checks: tuple[StoreCheck, ...] = CHECKS,
    *,
    at_once: int = 1,
    watch: Watch = lambda _: None,
) -> list[CheckOutcome]:
    """Run the checks, each below its own part of `prefix`. An error of the store fails its check only.

    Raises StoreFull, and StoreUnreachable for a connection that is refused: they say nothing about a promise.
    `watch` gets each outcome as it is known.
    """
    outcomes: dict[str, CheckOutcome] = {}

    def run(group: list[StoreCheck]) -> list[CheckOutcome]:
        return [CheckOutcome(one, _problem(one, Trial(store, f"{prefix}{one.slug}/", clock, scale))) for one in group]

    with emptied(store, prefix, at_once), ThreadPoolExecutor(at_once) as pool:
        for outcome in _results([pool.submit(run, group) for group in _groups(checks)]):
            outcomes[outcome.check.slug] = outcome
            watch(outcome)
    return [outcomes[check.slug] for check in checks]


def _groups(checks: tuple[StoreCheck, ...]) -> list[list[StoreCheck]]:
    """What runs at the same time, the longest first."""
    streams = [check for check in checks if check.slug in _STREAMS]
    others = [[check] for check in checks if check.slug not in _STREAMS]
    races = [group for group in others if group[0].slug.endswith("-race")]
    return [group for group in (*races, streams, *(one for one in others if one not in races)) if group]


def _results(futures: list[Future[list[CheckOutcome]]]) -> Iterator[CheckOutcome]:
    """The outcomes as they arrive. After an error no further check is begun."""
    try:
        for future in as_completed(futures):
            yield from future.result()
    finally:
        for future in futures:
            future.cancel()


def _problem(check: StoreCheck, trial: Trial) -> str | None:
    try:
        return check.run(trial)
    except LogkeepError as error:
        if isinstance(error, StoreFull) or (isinstance(error, StoreUnreachable) and error.lasting):
            raise
        return str(error)


@contextmanager
def emptied(store: Store, prefix: str, at_once: int = 1) -> Iterator[None]:
    """Remove what the block leaves below the prefix. If deleting is refused, the check of `delete` reports it.

    A store that cannot be reached is not asked again: the user would wait as long once more.
    """
    reached = True
    try:
        yield
    except StoreUnreachable as error:
        reached = not error.lasting
        raise
    finally:
        if reached:
            with suppress(LogkeepError):
                _delete_all(store, [info.name for info in store.list(prefix)], at_once)
                below = sweepable(store)
                if below is not None:
                    below.remove_empty(prefix)


def _delete_all(store: Store, names: Iterable[str], at_once: int) -> None:
    with ThreadPoolExecutor(at_once) as pool:
        for future in [pool.submit(store.delete, name) for name in names]:
            future.result()
