"""The partition of a group in `__consumer_offsets`, by known hash codes of Java."""

import pytest

from logkeep.kafka.backup.transaction_activity import coordinator_partition


@pytest.mark.parametrize(
    ("group", "java_hash"),
    [
        ("", 0),
        ("abc", 96354),
        ("hello", 99162322),
        ("polygenelubricants", -(2**31)),
        ("Hello, World!", 1498789909),
        ("logkeep-group", -364962693),
        ("billing", -109829509),
        ("grüße", 98768023),
    ],
)
def test_the_partition_follows_javas_hash(group: str, java_hash: int) -> None:
    expected = 0 if java_hash == -(2**31) else abs(java_hash) % 50
    assert coordinator_partition(group, 50) == expected
