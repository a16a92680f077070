"""What `logkeep zookeeper backup --follow` tells: a line for each round, a summary at the end."""

import msgspec

from logkeep.cli.terminal.text import count, duration, plural, size


class ZooKeeperRound(msgspec.Struct, frozen=True, kw_only=True):
    """One round: the document of a line."""

    round: int
    id: int | None
    """The backup that the round committed; null when nothing was new, or it failed."""
    backup_zxid: str | None
    new_bytes: int
    behind_seconds: float
    """Since the last moment at which the archive was seen to hold all that the members had."""
    findings: int
    merged_objects: int
    """Small objects that were put into few, in a round that looked for them."""
    seconds: float
    error: str | None
    """The name of the error that failed the round, or what could not be done after its commit."""
    message: str | None
    again_in_seconds: float


class RoundsSummary(msgspec.Struct, frozen=True, kw_only=True):
    rounds: int
    committed: int
    idle: int
    failed: int
    merged_objects: int
    last_round: ZooKeeperRound | None
    ended: bool


def round_text(one: ZooKeeperRound) -> str:
    """One line, whatever happened."""
    if one.error is not None and one.id is None:
        return f"round {one.round}: failed, again in {duration(one.again_in_seconds)}: {one.message}"
    if one.id is None:
        return f"round {one.round}: nothing new"
    more = [
        f"; {plural(one.findings, 'finding')}" if one.findings else "",
        f"; merged {count(one.merged_objects)} small objects" if one.merged_objects else "",
        f"; after it: {one.message}" if one.error is not None else "",
    ]
    return f"round {one.round}: backup {one.id}, up to {one.backup_zxid}, {size(one.new_bytes)}{''.join(more)}"


def summary_text(summary: RoundsSummary, new_bytes: int) -> str:
    return (
        f"followed for {plural(summary.rounds, 'round')}: {plural(summary.committed, 'backup')}, "
        f"{count(summary.idle)} without anything new, {count(summary.failed)} failed · {size(new_bytes)}"
    )
