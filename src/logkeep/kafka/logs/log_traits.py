"""Traits of a log's batches that a restore needs and segment rows lack: largest size, codecs, transactions. Values."""

from collections.abc import Iterable

import msgspec


class LogTraits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Traits of all archived batches of a log; the defaults if there are none."""

    largest_batch_bytes: int = 0
    """The smallest `max.message.bytes` that a target may have."""
    codecs: tuple[str, ...] = ()
    transactional: bool = False

    def joined(self, other: "LogTraits") -> "LogTraits":
        return LogTraits(
            max(self.largest_batch_bytes, other.largest_batch_bytes),
            tuple(sorted({*self.codecs, *other.codecs})),
            self.transactional or other.transactional,
        )


def all_joined(some: Iterable[LogTraits | None]) -> LogTraits | None:
    """The traits of all together; None if those of one are not known."""
    whole = LogTraits()
    for each in some:
        if each is None:
            return None
        whole = whole.joined(each)
    return whole
