"""What a run that follows decides between its rounds."""

import pytest

from logkeep import errors
from logkeep.kafka.follow.rules import LONGEST_PAUSE_S, merging_due, pause_s, retry_cures

CURED = (
    errors.ClusterUnreachable,
    errors.ClusterNotReady,
    errors.StoreUnreachable,
    errors.StoreBusy,
    errors.StoreFull,
    errors.Locked,
    errors.LeaseLost,
    errors.CommitConflict,
    errors.TaskFailed,
    errors.SourceDamaged,
    errors.TopicMissing,
)
FINAL = (
    errors.AuthenticationFailed,
    errors.NotAuthorised,
    errors.TlsFailed,
    errors.ClusterTooOld,
    errors.UsageError,
    errors.StoreDenied,
    errors.StoreLocationMissing,
    errors.Damaged,
    errors.OldMessageFormat,
    errors.Interrupted,
    errors.Terminated,
)


@pytest.mark.parametrize("kind", CURED)
def test_trouble_that_passes(kind: type[errors.LogkeepError]) -> None:
    assert retry_cures(kind("it happened"))


@pytest.mark.parametrize("kind", FINAL)
def test_trouble_that_stays(kind: type[errors.LogkeepError]) -> None:
    assert not retry_cures(kind("it happened"))


def test_rounds_begin_an_interval_apart_and_failures_wait_longer_and_longer() -> None:
    assert (pause_s(10, 3, 0), pause_s(10, 12, 0)) == (7, 0)
    waits = [pause_s(10, 3, failures) for failures in range(1, 10)]
    assert waits == [1, 2, 4, 8, 16, 32, LONGEST_PAUSE_S, LONGEST_PAUSE_S, LONGEST_PAUSE_S]
    assert pause_s(10, 3, 100_000) == LONGEST_PAUSE_S


def test_merging_waits_for_enough_rounds() -> None:
    assert [merging_due(n) for n in (0, 31, 32, 40)] == [False, False, True, True]
