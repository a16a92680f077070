"""Which topics a user means. Pure.

Patterns match whole names, as Kafka's own do; several are alternatives, and an exclusion wins. Internal topics are
taken only when asked for.
"""

import re
from collections.abc import Iterable, Sequence

from logkeep.errors import UsageError
from logkeep.kafka.values import Topic


def choose_topics(
    topics: Iterable[Topic], include: Sequence[str], exclude: Sequence[str], *, internal: bool
) -> list[Topic]:
    """The chosen topics by name. Raises UsageError for a bad pattern, or when nothing is chosen."""
    wanted, unwanted = [_compiled(p) for p in include], [_compiled(p) for p in exclude]
    known = sorted(topics, key=lambda t: t.name)
    chosen = [
        t
        for t in known
        if (internal or not t.internal)
        and (not wanted or any(p.fullmatch(t.name) for p in wanted))
        and not any(p.fullmatch(t.name) for p in unwanted)
    ]
    if wanted and not chosen:
        names = ", ".join(t.name for t in known[:5]) or "none"
        raise UsageError(
            f"no topic matches {' or '.join(include)}", remedy=f"patterns match whole names; the cluster has: {names}"
        )
    return chosen


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise UsageError(f"{pattern!r} is not a pattern: {error}") from error
