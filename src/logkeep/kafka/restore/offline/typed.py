"""What the user asked for, as words of the commands that the procedure prints. Pure: a wish in, words out, unquoted."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from logkeep.kafka.restore.offline.values import OfflineWish
from logkeep.model.time import rfc3339


def restore_words(wish: OfflineWish) -> tuple[str, ...]:
    """For the restore into files: the same logs, under the same names, up to the same ends."""
    choice = wish.choice
    until = () if wish.until_ms is None else (_moment(wish.until_ms),)
    return (
        *group_words(wish),
        *_each("--partitions", choice.partitions),
        *_each("--until-time", until),
        *_each("--until-offset", choice.until_offsets),
        *(["--replace-records"] if wish.replace else []),
        *(["--here-only"] if wish.here_only else []),
    )


def group_words(wish: OfflineWish) -> tuple[str, ...]:
    """For the groups behind it, which know of topics and names, and find the ends in the logs themselves."""
    choice = wish.choice
    return (
        *_each("-r", (wish.repo,) if wish.repo else ()),
        *_each("--topics", choice.include),
        *_each("--exclude", choice.exclude),
        *_each("--rename", choice.renames),
    )


def _each(flag: str, values: Sequence[str]) -> list[str]:
    return [word for value in values for word in (flag, value)]


def _moment(time_ms: int) -> str:
    """To the millisecond, as --until-time understands it again."""
    return rfc3339(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=time_ms))
