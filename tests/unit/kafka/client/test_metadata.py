"""A topic with an error is listed as unready and does not affect other topics."""

from types import SimpleNamespace
from typing import Any
from uuid import UUID

from logkeep.kafka.client.metadata import read_metadata

_LEADER_NOT_AVAILABLE, _DENIED = 5, 29


def _topic(name: str, code: int = 0) -> Any:
    return SimpleNamespace(name=name, topic_id=UUID(int=7), is_internal=False, error_code=code, partitions=[])


def _reply(*topics: Any) -> Any:
    return SimpleNamespace(cluster_id="c", controller_id=1, brokers=[], topics=list(topics))


def test_one_topic_in_an_error_leaves_the_others_readable() -> None:
    found = read_metadata(_reply(_topic("b"), _topic("new", _LEADER_NOT_AVAILABLE), _topic("a")))
    assert [t.name for t in found.topics] == ["a", "b"]
    assert [(t.name, t.code, t.passing) for t in found.unready] == [("new", _LEADER_NOT_AVAILABLE, True)]


def test_what_waiting_cannot_cure_is_told() -> None:
    (denied,) = read_metadata(_reply(_topic("secret", _DENIED))).unready
    assert (denied.code, denied.passing) == (_DENIED, False)
