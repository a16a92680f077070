"""The type of `--topic-retention`: `RE=TIME[,SIZE]`, several of them, the first match counts."""

import re
import shlex
from dataclasses import dataclass
from typing import Final

from logkeep.config.option_types import Duration, Size
from logkeep.kafka.retention.rules import NO_LIMIT, SOURCE, RetentionLimit, TopicRetention

_FOREVER: Final = "forever"


@dataclass(frozen=True)
class TopicRetentions:
    metavar: str = "RE=TIME[,SIZE]"
    expected: str = "RE=TIME[,SIZE] with TIME source, forever or a duration, such as 'orders.*=30d' or 'logs=7d,10GiB'"

    def parse(self, text: str) -> tuple[TopicRetention, ...]:
        return self.from_flags(tuple(shlex.split(text)))

    def from_flags(self, texts: tuple[str, ...]) -> tuple[TopicRetention, ...]:
        return tuple(self._rule(text) for text in texts)

    def from_yaml(self, value: object) -> tuple[TopicRetention, ...]:
        """A list of the same texts, or a mapping of patterns to limits."""
        if isinstance(value, dict):
            return self.from_flags(tuple(f"{pattern}={limits}" for pattern, limits in value.items()))
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise ValueError(f"must be {self.expected}")
        return self.from_flags(tuple(texts))

    def show(self, value: object) -> str:
        return shlex.join(str(rule) for rule in value) if isinstance(value, tuple) else str(value)

    def _rule(self, text: str) -> TopicRetention:
        pattern, equals, limits = text.rpartition("=")
        time, comma, size = limits.partition(",")
        if not equals or not pattern:
            raise ValueError(f"must be {self.expected}, not {text!r}")
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"has {pattern!r}, which is not a pattern: {error}") from None
        time_ms = _time_ms(time.strip())
        size_bytes = _size_bytes(size.strip()) if comma else SOURCE if time_ms == SOURCE else NO_LIMIT
        return TopicRetention(pattern, time_ms, size_bytes, limits.strip())


def _time_ms(text: str) -> RetentionLimit:
    if text == SOURCE:
        return SOURCE
    if text == _FOREVER:
        return NO_LIMIT
    return int(Duration().parse(text).total_seconds() * 1000)


def _size_bytes(text: str) -> RetentionLimit:
    if text == SOURCE:
        return SOURCE
    return NO_LIMIT if text == _FOREVER else Size().parse(text)
