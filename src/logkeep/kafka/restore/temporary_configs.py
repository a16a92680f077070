"""Configs of a topic while records are put into it. Pure.

Nothing may be deleted, compacted, stamped, recompressed or refused meanwhile, whatever the topic is told in the end.
"""

from collections.abc import Collection, Mapping

_FOREVER = str(2**63 - 1)
_LARGEST = 2**31 - 1
_MIB = 1024 * 1024
_OVERHEAD_BYTES = 12
"""The limit counts offset and length of a batch, its own length field does not."""
_FILLER_BYTES = 2 * _MIB
"""A million null records in one batch stay well below it."""
_UNKNOWN_BATCH_BYTES = 100 * _MIB
"""No broker takes a larger request unless it was told to."""

_QUIET = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "message.timestamp.type": "CreateTime",
    "compression.type": "producer",
    "message.timestamp.before.max.ms": _FOREVER,
    "message.timestamp.after.max.ms": _FOREVER,
}
_OLD_TIME_LIMIT = "message.timestamp.difference.max.ms"
"""Brokers before 4.0 fall back to it where the two newer limits have their defaults."""

TIERING = ("remote.", "local.retention.")
THROTTLES = frozenset({"leader.replication.throttled.replicas", "follower.replication.throttled.replicas"})
"""They name brokers of the source that were moving replicas."""


def while_restoring(
    final: Mapping[str, str],
    defaults: Mapping[str, str],
    known: Collection[str],
    *,
    largest_batch_bytes: int | None,
    preserve: bool,
    replicas: int,
) -> dict[str, str]:
    """All configs of the topic's own for the time of the restore; `defaults` are what the target gives to all.

    `known` are names of configs that it has.
    """
    kept = {k: v for k, v in final.items() if not k.startswith(TIERING) and k not in {*THROTTLES, _OLD_TIME_LIMIT}}
    effective = {**defaults, **kept}
    limit = _message_limit(effective, largest_batch_bytes, preserve=preserve)
    more = {"max.message.bytes": str(limit)}
    if _OLD_TIME_LIMIT in known:
        more[_OLD_TIME_LIMIT] = _FOREVER
    if _number(effective.get("segment.bytes"), limit) < limit:
        more["segment.bytes"] = str(limit)  # a batch must fit into one segment
    if _number(effective.get("min.insync.replicas"), 1) > replicas:
        more["min.insync.replicas"] = str(replicas)  # nothing would ever be acknowledged
    return {**kept, **_QUIET, **more}


def _message_limit(effective: Mapping[str, str], largest_batch_bytes: int | None, *, preserve: bool) -> int:
    if largest_batch_bytes is None:
        needed = _UNKNOWN_BATCH_BYTES
    else:
        needed = largest_batch_bytes + largest_batch_bytes // 10 + _OVERHEAD_BYTES
    own = _number(effective.get("max.message.bytes"), _MIB + _OVERHEAD_BYTES)
    return min(max(needed, own, _FILLER_BYTES if preserve else 0), _LARGEST)


def _number(text: str | None, otherwise: int) -> int:
    return int(text) if text and text.isdecimal() else otherwise
