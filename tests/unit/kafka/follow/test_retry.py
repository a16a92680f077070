"""Which errors of a round that follows a cluster are repeated."""

import pytest

from logkeep import errors
from logkeep.kafka.follow.run import FollowedCluster

CLUSTER = FollowedCluster.__new__(FollowedCluster)
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
    assert CLUSTER.retry_cures(kind("it happened"))


@pytest.mark.parametrize("kind", FINAL)
def test_trouble_that_stays(kind: type[errors.LogkeepError]) -> None:
    assert not CLUSTER.retry_cures(kind("it happened"))
