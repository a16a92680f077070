"""Topics restored with another number of partitions: findings, refusals and estimates. Pure."""

from collections.abc import Mapping

import msgspec

from logkeep.errors import LogkeepError, TargetUnsafe, UsageError
from logkeep.kafka.restore.facts.survey_task import LogSurvey
from logkeep.kafka.restore.facts.target import TargetFacts
from logkeep.kafka.restore.plan.duration import PROVEN_BYTES_PER_S
from logkeep.kafka.restore.plan.selection import SelectedLogs
from logkeep.model.findings import Finding, Severity
from logkeep.model.plurals import plural
from logkeep.model.segments import LogName

LARGEST_MADE_BYTES = 160 << 10
"""Largest batch that is built from records of several batches, unless a single record is larger."""
MOST_RECORDS = 2**27
"""Limit for one archived partition: its offset map may need a row for each record, and holds no more rows."""
_MAP_BYTES = 24
_REPORTED_RECORDS = 10_000_000


def equal_share(whole: int, partitions: int, partition: int) -> int:
    """An equal part of a total; the parts add up to the total."""
    return whole * (partition + 1) // partitions - whole * partition // partitions


def with_reencoding(survey: LogSurvey, chosen: SelectedLogs) -> LogSurvey:
    """The survey with the bytes to re-encode: all of them when the log is spread."""
    spread = survey.log.name in chosen.repartitioned
    return msgspec.structs.replace(survey, reencoded_bytes=survey.bytes) if spread else survey


def reading_s(survey: LogSurvey, chosen: SelectedLogs, *, proof: bool) -> float:
    """The time to read the whole log once for each partition that gets a share, and again for each proof."""
    times = chosen.repartitioned.get(survey.log.name, 0) * (2 if proof else 1)
    return times * survey.bytes / PROVEN_BYTES_PER_S


def refused_repartitions(
    chosen: SelectedLogs, surveys: Mapping[LogName, LogSurvey], target: TargetFacts, *, into_existing: bool
) -> list[LogkeepError]:
    """Targets whose partition count does not match the keys' partitions, and logs with too many records."""
    refused: list[LogkeepError] = []
    for source, partitions in chosen.repartitioned.items():
        there = target.topics.get(chosen.names[source])
        if into_existing and there is not None and there.partitions > partitions:
            refused.append(_too_wide(there.name, there.partitions, partitions))
    return [
        *refused,
        *(
            UsageError(
                f"it has more than {MOST_RECORDS:,} records: their offset map would have too many rows",
                subject=str(log.log),
                remedy="restore the topic with its original number of partitions",
            )
            for log in chosen.logs
            if log.log.name in chosen.repartitioned and surveys[log.log].records > MOST_RECORDS
        ),
    ]


def _too_wide(topic: str, has: int, wanted: int) -> TargetUnsafe:
    return TargetUnsafe(
        f"it has {plural(has, 'partition')}, and records would be spread over {wanted}: producers would use others "
        "for keys",
        subject=topic,
        remedy=f"use --repartition with {has}, or another topic with --rename",
    )


def repartition_findings(chosen: SelectedLogs, surveys: Mapping[LogName, LogSurvey]) -> list[Finding]:
    """One finding for each repartitioned topic."""
    return [_finding(chosen, surveys, source, n) for source, n in chosen.repartitioned.items()]


def _finding(chosen: SelectedLogs, surveys: Mapping[LogName, LogSurvey], source: str, partitions: int) -> Finding:
    logs = [log for log in chosen.logs if log.log.name == source]
    records = sum(surveys[log.log].records for log in logs)
    memory = f"; their offset map takes up to {records * _MAP_BYTES >> 20:,} MiB of memory" * (
        records >= _REPORTED_RECORDS
    )
    return Finding(
        code="repartitioned",
        severity=Severity.NOTE,
        where=chosen.names[source],
        what=(
            f"records of {plural(len(logs), 'partition')} are spread over {partitions} by their keys, as Kafka's "
            f"producers do; records of one partition keep their order, and groups may read records again{memory}"
        ),
    )
