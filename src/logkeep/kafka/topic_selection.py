"""Selects topics by the patterns of a user. Pure.

Patterns match whole names, as Kafka's own do; several are alternatives, and an exclusion wins. Internal topics are
selected only with --internal.
"""

import re
from collections.abc import Callable, Iterable, Sequence

from logkeep.errors import UsageError
from logkeep.kafka.client.topology import Topic
from logkeep.model.plurals import first_names

_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
TopicFilter = Callable[[str, bool], bool]
"""Whether a topic is selected, by its name and whether it is internal."""


def topic_filter(include: Sequence[str], exclude: Sequence[str], *, internal: bool) -> TopicFilter:
    """The filter for these patterns. Raises UsageError for a bad pattern."""
    wanted, unwanted = [compiled(p) for p in include], [compiled(p) for p in exclude]

    def selects(name: str, is_internal: bool) -> bool:
        return (
            (internal or not is_internal)
            and (not wanted or any(p.fullmatch(name) for p in wanted))
            and not any(p.fullmatch(name) for p in unwanted)
        )

    return selects


def choose_topics(
    topics: Iterable[Topic], include: Sequence[str], exclude: Sequence[str], *, internal: bool
) -> list[Topic]:
    """The selected topics by name. Raises UsageError for a bad pattern, or if none is selected."""
    selects = topic_filter(include, exclude, internal=internal)
    known = sorted(topics, key=lambda t: t.name)
    chosen = [t for t in known if selects(t.name, t.internal)]
    if include and not chosen and any(compiled(p).fullmatch(t.name) for t in known for p in include):
        raise UsageError(
            f"every topic that matches {' or '.join(include)} is excluded, or internal",
            remedy="check --exclude; internal topics need --internal",
        )
    if include and not chosen:
        remedy = (
            f"patterns are regular expressions for whole names; the cluster has: {first_names([t.name for t in known])}"
        )
        raise UsageError(f"no topic matches {' or '.join(include)}", remedy=remedy)
    return chosen


def is_topic_name(name: str) -> bool:
    """Whether brokers accept it as the name of a topic."""
    return _NAME.fullmatch(name) is not None and name not in {".", ".."}


def exact_pattern(name: str) -> str:
    """A pattern that matches this name only."""
    return name.replace(".", r"\.")


def compiled(pattern: str) -> re.Pattern[str]:
    """The compiled pattern of a user. Raises UsageError for a bad pattern."""
    try:
        return re.compile(pattern)
    except re.error as error:
        remedy = "write a regular expression that matches whole names, such as 'orders.*'"
        raise UsageError(f"{pattern!r} is not a pattern: {error}", remedy=remedy) from error
