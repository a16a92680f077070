"""The follow loop: pauses, retries, merges, and a stop in the middle of a round."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from logkeep.errors import Damaged, Interrupted, LeaseLost, Locked, LogkeepError, StoreBusy, StoreFull
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.freshness import read_freshness
from logkeep.repository.follow import (
    LONGEST_PAUSE_S,
    MERGE_EVERY,
    Follower,
    FollowRound,
    RetryPause,
    SourceState,
    pause_s,
)
from logkeep.repository.upkeep.optimize import Optimized
from tests.support.zookeeper.repositories import new_place


def test_rounds_begin_an_interval_apart_and_failures_wait_longer_and_longer() -> None:
    assert (pause_s(10, 3, 0, RetryPause()), pause_s(10, 12, 0, RetryPause())) == (7, 0)
    waits = [pause_s(10, 3, failures, RetryPause()) for failures in range(1, 10)]
    assert waits == [1, 2, 4, 8, 16, 32, LONGEST_PAUSE_S, LONGEST_PAUSE_S, LONGEST_PAUSE_S]
    assert pause_s(10, 3, 100_000, RetryPause()) == LONGEST_PAUSE_S


class Source:
    """Each step: an error to raise, an id to commit, or None for nothing new."""

    retry_pause = RetryPause()

    def __init__(self, steps: list[LogkeepError | int | None], after: LogkeepError | None = None) -> None:
        self.place: SourceRef = new_place()
        self.steps, self.after, self.merges = steps, after, 0

    def round(self) -> int | None:
        step = self.steps.pop(0)
        if isinstance(step, LogkeepError):
            raise step
        return step

    def changed(self, _done: int) -> bool:
        return True

    def state(self, done: int | None, _took_s: float) -> SourceState:
        if self.after is not None:
            raise self.after
        return SourceState(done or 1, 7, 60)

    def merge(self) -> Optimized | None:
        self.merges += 1
        return Optimized(2, 1, 100, ())

    def retry_cures(self, error: LogkeepError) -> bool:
        return error.retry_helps or isinstance(error, Locked | StoreFull)


class Stop:
    """Requested when the source has no step left."""

    def __init__(self, source: Source) -> None:
        self.source, self.raises = source, False

    @property
    def requested(self) -> bool:
        return not self.source.steps

    def wait(self, _seconds: float) -> None:
        assert not self.raises, "between rounds a second request has nothing to abort"

    @contextmanager
    def raising(self) -> Iterator[None]:
        self.raises = True
        yield
        self.raises = False


def followed(source: Source) -> list[FollowRound[int]]:
    heard: list[FollowRound[int]] = []
    Follower(source, Stop(source), 0.0, heard.append).run()
    return heard


def test_a_temporary_error_is_reported_and_the_round_repeated() -> None:
    source = Source([StoreBusy("busy"), StoreBusy("busy"), 1, None])
    heard = followed(source)
    assert [(one.failed, one.done, one.changed) for one in heard] == [
        (True, None, False),
        (True, None, False),
        (False, 1, True),
        (False, None, False),
    ]
    assert [one.again_in_s for one in heard] == [1, 2, 0, 0]
    freshness = read_freshness(source.place)
    assert freshness is not None
    assert (freshness.backup, freshness.lag_offsets, freshness.next_within_s) == (1, 7, 60)


@pytest.mark.parametrize("error", [Damaged("damaged"), Interrupted("interrupted")])
def test_any_other_error_ends_the_run(error: LogkeepError) -> None:
    with pytest.raises(type(error)):
        followed(Source([error, 1]))
    with pytest.raises(Interrupted):
        followed(Source([1, 2], after=Interrupted("interrupted")))


def _held_by(operation: str) -> Locked:
    held = Locked("held")
    held.operation = operation
    return held


@pytest.mark.parametrize("holder", ["backup", "optimize", "repair"])
def test_after_a_full_disk_another_holder_of_the_lease_ends_the_run(holder: str) -> None:
    with pytest.raises(Locked) as caught:
        followed(Source([StoreFull("full"), StoreBusy("busy"), _held_by(holder), 1]))
    assert caught.value.exit_code == 50


@pytest.mark.parametrize("waited_for", [_held_by("prune"), _held_by("delete"), _held_by(""), LeaseLost("lost")])
def test_after_a_full_disk_the_run_waits_for_one_that_frees_space_or_is_unknown(waited_for: LogkeepError) -> None:
    heard = followed(Source([StoreFull("full"), waited_for, 1]))
    assert [type(one.error) for one in heard] == [StoreFull, type(waited_for), type(None)]


def test_a_lease_is_waited_for_before_a_full_disk_and_after_a_round_that_ended_well() -> None:
    heard = followed(Source([_held_by("backup"), StoreFull("full"), 1, _held_by("backup"), 2]))
    assert [type(one.error) for one in heard] == [Locked, StoreFull, type(None), Locked, type(None)]


def test_an_error_after_the_commit_does_not_undo_the_round() -> None:
    (one,) = followed(Source([1], after=StoreBusy("busy")))
    assert (one.failed, one.done, type(one.error)) == (False, 1, StoreBusy)


def test_merging_waits_for_enough_committed_rounds() -> None:
    source = Source([None, *range(1, MERGE_EVERY + 3)])
    merged = [one.number for one in followed(source) if one.merged]
    assert (merged, source.merges) == ([MERGE_EVERY + 1], 1)
