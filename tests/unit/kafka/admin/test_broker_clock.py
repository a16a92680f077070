"""The cluster's clock, and what is used where the controllers do not report one."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from logkeep.errors import ClusterNotReady, ClusterUnreachable, NotAuthorised
from logkeep.kafka.admin.broker_clock import cluster_time
from logkeep.kafka.client.cluster import Cluster
from logkeep.model.clock_time import ClockName, ClockTime

NOT_LEADER, TIMED_OUT, UNKNOWN = 6, 7, -1


def _reply(error: int = 0, partition_error: int = 0, *, leader_ms: int = 5_000) -> Any:
    voters = [
        SimpleNamespace(replica_id=1, last_fetch_timestamp=leader_ms),
        SimpleNamespace(replica_id=2, last_fetch_timestamp=9),
    ]
    partition = SimpleNamespace(error_code=partition_error, leader_id=1, current_voters=voters)
    return SimpleNamespace(error_code=error, topics=[SimpleNamespace(partitions=[partition])])


def _time(answer: Any) -> ClockTime:
    class Answering:
        def ask_any(self, _api: str, _request: object) -> Any:
            if isinstance(answer, Exception):
                raise answer
            return answer

    return cluster_time(cast(Cluster, Answering()))


def test_the_leading_controller_reports_its_time() -> None:
    assert _time(_reply()) == ClockTime(5_000, ClockName.BROKER)


@pytest.mark.parametrize(
    "answer",
    (
        _reply(TIMED_OUT),
        _reply(UNKNOWN),
        _reply(0, NOT_LEADER),
        _reply(leader_ms=-1),
        SimpleNamespace(error_code=0, topics=[]),
        SimpleNamespace(error_code=0, topics=[SimpleNamespace(partitions=[])]),
        NotAuthorised("no"),
        ClusterNotReady("an election"),
    ),
)
def test_without_it_a_backup_goes_on_with_its_own_clock(answer: Any) -> None:
    assert _time(answer).clock is ClockName.OWN


def test_a_cluster_that_does_not_answer_is_an_error() -> None:
    with pytest.raises(ClusterUnreachable):
        _time(ClusterUnreachable("gone"))
