"""What users say about the retention of archived topics. Light to import: options are made of it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Literal

NO_LIMIT: Final = 2**63 - 1
"""No limit, as a time in ms and as a size in bytes."""
SOURCE: Final = "source"

RetentionLimit = int | Literal["source"]
"""A number, or what the topic itself guarantees."""


@dataclass(frozen=True)
class TopicRetention:
    """One rule for topics whose whole name matches."""

    pattern: str
    time_ms: RetentionLimit
    size_bytes: RetentionLimit
    text: str
    """As the user wrote it: `30d`, `source`, `7d,1GiB`."""

    def matches(self, topic: str) -> bool:
        return re.fullmatch(self.pattern, topic) is not None

    def __str__(self) -> str:
        return f"{self.pattern}={self.text}"


AS_THE_SOURCE: Final = TopicRetention(".*", SOURCE, SOURCE, SOURCE)
"""What `--source-retention` adds after all other rules."""


@dataclass(frozen=True)
class SourceRetention:
    """Everything that the user said."""

    rules: tuple[TopicRetention, ...]
    """The first one that matches counts."""
    grace: timedelta = timedelta(days=7)
    less_than_source: bool = False


def rule_for(rules: Sequence[TopicRetention], topic: str) -> TopicRetention | None:
    return next((rule for rule in rules if rule.matches(topic)), None)


def time_text(time_ms: int) -> str:
    """`7d`, `1d12h`, `forever`."""
    if time_ms >= NO_LIMIT:
        return "forever"
    units = (("d", time_ms // 86_400_000), ("h", time_ms // 3_600_000 % 24), ("m", time_ms // 60_000 % 60))
    parts = (*units, ("s", time_ms // 1000 % 60), ("ms", time_ms % 1000))
    return "".join(f"{number}{unit}" for unit, number in parts if number) or "0s"


def size_text(size_bytes: int) -> str:
    """`1GiB`, `1500 bytes`, `no limit`."""
    if size_bytes >= NO_LIMIT:
        return "no limit"
    power = next((p for p in range(5, 0, -1) if size_bytes and size_bytes % 1024**p == 0), 0)
    return f"{size_bytes // 1024**power}{' KMGTP'[power]}iB" if power else f"{size_bytes} bytes"
