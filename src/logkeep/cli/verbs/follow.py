"""What `logkeep kafka backup --follow` tells: a line for each round, a summary at the end."""

import msgspec

from logkeep.cli.terminal.text import count, duration, size


class TopicThreat(msgspec.Struct, frozen=True, kw_only=True):
    topic: str
    overtaken_in_seconds: float
    """About when retention begins to remove records that are not archived."""


class KafkaRound(msgspec.Struct, frozen=True, kw_only=True):
    """One round: the document of a line."""

    round: int
    id: int | None
    """The newest backup at the end of the round; null when the round failed."""
    changed: bool
    """False: the cluster equals that backup, and nothing was committed."""
    new_offsets: int
    new_bytes: int
    lag_offsets: int | None
    """Beyond the archived cut when the round ended; null when that could not be asked."""
    lag_bytes: int | None
    """About."""
    threats: tuple[TopicThreat, ...]
    gaps: tuple[str, ...]
    findings: int
    """Beside gaps; the backup's `info` has them."""
    merged_objects: int
    """Small objects that were merged into larger ones after this round."""
    seconds: float
    error: str | None
    """The name of the error that failed the round, or that came after its commit."""
    message: str | None
    again_in_seconds: float


class FollowSummary(msgspec.Struct, frozen=True, kw_only=True):
    rounds: int
    committed: int
    idle: int
    failed: int
    merged_objects: int
    last_round: KafkaRound | None
    ended: bool


def round_text(one: KafkaRound) -> str:
    """One line, whatever happened."""
    if one.id is None:
        return f"round {one.round}: failed, again in {duration(one.again_in_seconds)}: {one.message}"
    parts = [f"round {one.round}: {_work(one)}", _lag(one)]
    parts += [f"{t.topic}: retention will overtake you in {duration(t.overtaken_in_seconds)}" for t in one.threats]
    parts += [f"GAP {gap}" for gap in one.gaps]
    parts += [f"{one.findings} finding{'s' if one.findings > 1 else ''}"] if one.findings else []
    parts += [f"merged {count(one.merged_objects)} small objects"] if one.merged_objects else []
    parts += [str(one.message)] if one.message else []
    return "; ".join(part for part in parts if part)


def _work(one: KafkaRound) -> str:
    if not one.changed:
        return f"nothing new since backup {one.id}"
    return f"backup {one.id}, {count(one.new_offsets)} offsets, {size(one.new_bytes)}"


def _lag(one: KafkaRound) -> str:
    if one.lag_offsets is None:
        return "lag unknown"
    return f"lag {count(one.lag_offsets)} offsets, {size(one.lag_bytes or 0)}"


def summary_text(summary: FollowSummary, new_offsets: int, new_bytes: int) -> str:
    return (
        f"followed for {count(summary.rounds)} rounds: {count(summary.committed)} backups, "
        f"{count(summary.idle)} without anything new, {count(summary.failed)} failed"
        f" · {count(new_offsets)} offsets, {size(new_bytes)}"
    )
