"""The report of `kafka backup`, and of each round with --follow."""

import msgspec

from logkeep.cli.terminal.text import duration, plural, size
from logkeep.cli.verbs.follow import FollowCounts
from logkeep.cli.verbs.kafka.copied_report import KafkaCopied
from logkeep.cli.verbs.kafka.datasets.report import DatasetReport


class TopicThreat(msgspec.Struct, frozen=True, kw_only=True):
    topic: str
    overtaken_in_seconds: float
    """About when retention begins to remove records that are not archived."""


class KafkaRound(msgspec.Struct, frozen=True, kw_only=True):
    """One round of --follow: the document of a line."""

    round: int
    id: int | None
    """The newest backup at the end of the round; null when the round failed."""
    changed: bool
    """False: the cluster equals that backup, and nothing was committed."""
    new_offsets: int
    new_bytes: int
    lag_offsets: int | None
    """Beyond the archived cut when the round ended; null when the cluster did not answer."""
    lag_bytes: int | None
    """About."""
    threats: tuple[TopicThreat, ...]
    gaps: tuple[str, ...]
    findings: int
    """Besides gaps; the backup's `info` lists them."""
    merged_objects: int
    """Small objects that were merged into larger ones after this round."""
    seconds: float
    error: str | None
    """The name of the error that failed the round, or that followed its commit."""
    message: str | None
    again_in_seconds: float
    deletions_left_seconds: float | None = None
    """Until a round can no longer prove by time that it read every deletion of compacted topics; null: there are none,
    or the cluster did not answer."""
    catch_up: str | None = None
    """What was copied of the next generation of a compacted topic; null: nothing was."""


class KafkaFollowSummary(FollowCounts, frozen=True, kw_only=True):
    last_round: KafkaRound | None
    ended: bool


class KafkaBackupReport(KafkaCopied, frozen=True, kw_only=True):
    follow: KafkaFollowSummary | None = None
    """Of a run with --follow: then new offsets, bytes, gaps and findings are those of all its rounds."""
    dataset: DatasetReport | None = None
    """Of a run with --format: then nothing was stored in a repository, and new bytes are those of records."""


def round_text(one: KafkaRound) -> str:
    """One line, whatever happened."""
    if one.id is None:
        return f"round {one.round}: failed, again in {duration(one.again_in_seconds)}: {one.message}"
    work = f"backup {one.id}, {plural(one.new_offsets, 'offset')}, {size(one.new_bytes)}"
    parts = [f"round {one.round}: {work if one.changed else f'nothing new since backup {one.id}'}"]
    if one.lag_offsets is None:
        parts += ["lag unknown"]
    else:
        parts += [f"lag {plural(one.lag_offsets, 'offset')}, {size(one.lag_bytes or 0)}"]
    parts += [f"{t.topic}: retention will overtake you in {duration(t.overtaken_in_seconds)}" for t in one.threats]
    parts += [f"GAP {gap}" for gap in one.gaps]
    parts += [f"catch-up of {one.catch_up}"] if one.catch_up else []
    parts += [plural(one.findings, "finding")] if one.findings else []
    parts += [f"merged {plural(one.merged_objects, 'small object')}"] if one.merged_objects else []
    parts += [str(one.message)] if one.message else []
    return "; ".join(parts)
