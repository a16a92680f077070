"""The topics that a pattern selects."""

import pytest

from logkeep.errors import UsageError
from logkeep.kafka.topic_selection import choose_topics
from tests.support.kafka.cluster_values import topic

TOPICS = [
    topic("payments"),
    topic("orders.eu"),
    topic("orders"),
    topic("orders-audit"),
    topic("__consumer_offsets", internal=True),
]


def chosen(*include: str, exclude: tuple[str, ...] = (), internal: bool = False) -> list[str]:
    return [t.name for t in choose_topics(TOPICS, include, exclude, internal=internal)]


@pytest.mark.parametrize(
    ("include", "names"),
    [
        ((), ["orders", "orders-audit", "orders.eu", "payments"]),
        (("orders",), ["orders"]),
        (("order",), None),
        (("rders",), None),
        (("orders.*",), ["orders", "orders-audit", "orders.eu"]),
        (("orders|payments",), ["orders", "payments"]),
        (("payments", "orders"), ["orders", "payments"]),
        (("nothing", "orders"), ["orders"]),
        (("Orders",), None),
    ],
)
def test_patterns_match_whole_names(include: tuple[str, ...], names: list[str] | None) -> None:
    if names is None:
        with pytest.raises(UsageError, match="no topic matches"):
            chosen(*include)
    else:
        assert chosen(*include) == names


def test_an_exclusion_wins_and_matches_whole_names_too() -> None:
    assert chosen("orders.*", exclude=("orders-.*", "eu")) == ["orders", "orders.eu"]
    assert chosen(exclude=("orders.*",)) == ["payments"]


def test_what_is_named_and_excluded_is_nothing() -> None:
    with pytest.raises(UsageError, match="is excluded"):
        chosen("orders", exclude=("orders",))


def test_internal_topics_come_only_when_asked_for() -> None:
    assert "__consumer_offsets" in chosen(internal=True)
    assert chosen("__.*|orders", internal=True) == ["__consumer_offsets", "orders"]
    with pytest.raises(UsageError):
        chosen("__consumer_offsets")


def test_a_cluster_without_topics_is_no_error() -> None:
    assert choose_topics([], (), (), internal=False) == []


def test_a_bad_pattern_and_a_miss_are_told_in_words() -> None:
    with pytest.raises(UsageError, match=r"'\(' is not a pattern"):
        chosen("(")
    with pytest.raises(UsageError, match=r"'\*' is not a pattern"):
        chosen(exclude=("*",))
    with pytest.raises(UsageError) as missed:
        chosen("nothing")
    assert "orders, orders-audit" in str(missed.value.remedy)
