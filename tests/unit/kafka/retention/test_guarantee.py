"""What topics guarantee, and which guarantee is in force."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkeep.kafka.record.documents import TopicRecord
from logkeep.kafka.retention.guarantee import Guarantee, SeenGuarantee, guarantee_of, in_force
from logkeep.kafka.retention.rules import NO_LIMIT

NOW = datetime(2026, 11, 18, tzinfo=UTC)
WEEK = 7 * 86_400_000
GRACE = timedelta(days=7)


def topic(own: dict[str, str], brokers: dict[str, str] | None = None) -> TopicRecord:
    return TopicRecord("orders", "0" * 32, False, 1, 1, own, brokers or {})


@pytest.mark.parametrize(
    ("own", "brokers", "expected"),
    [
        ({}, {}, Guarantee(WEEK, NO_LIMIT)),
        ({"retention.ms": "1000"}, {}, Guarantee(1000, NO_LIMIT)),
        ({"retention.ms": "-1"}, {}, Guarantee(NO_LIMIT, NO_LIMIT)),
        ({"retention.bytes": "5000"}, {}, Guarantee(WEEK, 5000)),
        ({}, {"retention.ms": "2000", "retention.bytes": "9"}, Guarantee(2000, 9)),
        ({"retention.ms": "1000"}, {"retention.ms": "2000"}, Guarantee(1000, NO_LIMIT)),
        ({"retention.ms": "99999999999999999999"}, {}, Guarantee(NO_LIMIT, NO_LIMIT)),
        ({"retention.ms": "soon"}, {}, Guarantee(NO_LIMIT, NO_LIMIT)),
        ({"cleanup.policy": "compact"}, {}, Guarantee(deletes=False)),
        ({"cleanup.policy": ""}, {}, Guarantee(deletes=False)),
        ({"cleanup.policy": "compact,delete", "retention.ms": "5"}, {}, Guarantee(5, NO_LIMIT)),
        ({}, {"cleanup.policy": "compact"}, Guarantee(deletes=False)),
    ],
)  # fmt: skip
def test_the_guarantee_of_a_topic(own: dict[str, str], brokers: dict[str, str], expected: Guarantee) -> None:
    assert guarantee_of(topic(own, brokers), brokers_known=True) == expected


def test_what_a_record_does_not_say_is_no_limit() -> None:
    """A salvage, and an older release, may not know what is set on the brokers."""
    assert guarantee_of(topic({}), brokers_known=False) == Guarantee()
    assert guarantee_of(topic({"retention.ms": "1000"}), brokers_known=False) == Guarantee(1000, NO_LIMIT)


def seen(*days_and_times: tuple[float, int]) -> list[SeenGuarantee]:
    return [SeenGuarantee(NOW - timedelta(days=days), Guarantee(ms, NO_LIMIT)) for days, ms in days_and_times]


@pytest.mark.parametrize(
    ("why", "backups", "expected"),
    [
        ("never changed", seen((20, 10), (1, 10)), 10),
        ("raised", seen((20, 10), (1, 90)), 90),
        ("lowered a moment ago", seen((20, 90), (0.1, 1)), 90),
        ("lowered six days ago", seen((20, 90), (6, 1), (1, 1)), 90),
        ("lowered eight days ago", seen((20, 90), (8, 1), (1, 1)), 1),
        ("the first backup that saw it was exactly a grace ago", seen((20, 90), (7, 1)), 1),
        ("lowered, raised, lowered", seen((30, 9), (20, 1), (5, 50), (3, 1)), 50),
        ("a low value between two high ones", seen((30, 9), (20, 1), (10, 9)), 9),
        ("known for a shorter time than the grace", seen((6, 1), (1, 1)), NO_LIMIT),
    ],
)  # fmt: skip
def test_a_lower_guarantee_counts_a_grace_after_the_first_backup_that_saw_it(
    why: str, backups: list[SeenGuarantee], expected: int
) -> None:
    assert in_force(backups, NOW, GRACE).guarantee.time_ms == expected, why


def test_the_end_of_the_grace_is_reported() -> None:
    assert in_force(seen((20, 90), (6, 1), (1, 1)), NOW, GRACE).until == NOW + timedelta(days=1)
    assert in_force(seen((6, 1), (1, 1)), NOW, GRACE).known_since == NOW - timedelta(days=6)
    assert in_force(seen((20, 90), (1, 1)), NOW, timedelta(0)).guarantee.time_ms == 1


def test_a_damaged_backup_after_the_newest_good_one_may_have_seen_a_higher_guarantee() -> None:
    backups = seen((20, 10), (9, 10), (8, 90), (7.5, 10))
    assert in_force(backups, NOW, GRACE).guarantee.time_ms == 10
    assert in_force(backups, NOW, GRACE, last=3).guarantee.time_ms == 90


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 99)), min_size=1, max_size=8),
    st.integers(0, 20),
)
def test_no_guarantee_of_the_grace_is_ever_forgotten(made: list[tuple[int, int]], grace_days: int) -> None:
    """Day by day: whatever the newest backup of that day said, or no limit before the first one."""
    backups = seen(*sorted(made, reverse=True))
    found = in_force(backups, NOW, timedelta(days=grace_days)).guarantee.time_ms
    for day in range(grace_days):
        before = [each for each in backups if each.committed <= NOW - timedelta(days=day)]
        assert found >= (before[-1].guarantee.time_ms if before else NO_LIMIT)
    assert found >= backups[-1].guarantee.time_ms
