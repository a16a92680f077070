"""Topics that come back with another number of partitions: what is said, refused and reckoned beforehand. Pure."""

from collections.abc import Mapping

import msgspec

from logkeep.errors import LogkeepError, TargetUnsafe, UsageError
from logkeep.kafka.restore.facts.survey_task import LogSurvey
from logkeep.kafka.restore.facts.target import TargetFacts
from logkeep.kafka.restore.plan.duration import PROVEN_BYTES_PER_S
from logkeep.kafka.restore.plan.selection import SelectedLogs
from logkeep.model.findings import Finding, Severity
from logkeep.model.segments import LogName

LARGEST_MADE_BYTES = 160 << 10
"""What a batch made of records of several others may need, unless it is one record that is larger."""
MOST_RECORDS = 2**27
"""Of one archived partition: the map may have a row for each of its records, and holds no more."""
_MAP_BYTES = 24
_WORTH_TELLING = 10_000_000


def share(whole: int, partitions: int, partition: int) -> int:
    """An equal part; all of them together are the whole."""
    return whole * (partition + 1) // partitions - whole * partition // partitions


def encoded_anew(survey: LogSurvey, chosen: SelectedLogs) -> LogSurvey:
    """The log with the work that it makes: when it is spread, nothing of it is sent as it is."""
    spread = survey.log.name in chosen.repartitioned
    return msgspec.structs.replace(survey, reencoded_bytes=survey.bytes) if spread else survey


def reading_s(survey: LogSurvey, chosen: SelectedLogs, *, proof: bool) -> float:
    """What it takes that all of a log is read for each partition that gets a share, to be sent and to be proven."""
    times = chosen.repartitioned.get(survey.log.name, 0) * (2 if proof else 1)
    return times * survey.bytes / PROVEN_BYTES_PER_S


def refused_repartitions(
    chosen: SelectedLogs, surveys: Mapping[LogName, LogSurvey], target: TargetFacts, *, into_existing: bool
) -> list[LogkeepError]:
    """Targets in which keys would not stand where producers will look for them, and logs that are too long."""
    refused: list[LogkeepError] = []
    for source, partitions in chosen.repartitioned.items():
        there = target.topics.get(chosen.names[source])
        if into_existing and there is not None and there.partitions > partitions:
            refused.append(_too_wide(there.name, there.partitions, partitions))
    return [
        *refused,
        *(
            UsageError(
                f"it has more than {MOST_RECORDS:,} records: the map of where they went would have too many rows",
                subject=str(log.log),
                remedy="restore the topic with the partitions it had",
            )
            for log in chosen.logs
            if log.log.name in chosen.repartitioned and surveys[log.log].records > MOST_RECORDS
        ),
    ]


def _too_wide(topic: str, has: int, wanted: int) -> TargetUnsafe:
    return TargetUnsafe(
        f"it has {has} partitions, and records would be spread over {wanted}: producers would look elsewhere for keys",
        subject=topic,
        remedy=f"use --repartition with {has}, or another topic with --rename",
    )


def repartition_findings(chosen: SelectedLogs, surveys: Mapping[LogName, LogSurvey]) -> list[Finding]:
    """What becomes of each of these topics."""
    return [_finding(chosen, surveys, source, n) for source, n in chosen.repartitioned.items()]


def _finding(chosen: SelectedLogs, surveys: Mapping[LogName, LogSurvey], source: str, partitions: int) -> Finding:
    logs = [log for log in chosen.logs if log.log.name == source]
    records = sum(surveys[log.log].records for log in logs)
    memory = f"; their map takes up to {records * _MAP_BYTES >> 20:,} MiB of memory" * (records >= _WORTH_TELLING)
    return Finding(
        code="repartitioned",
        severity=Severity.NOTE,
        where=chosen.names[source],
        what=(
            f"records of {len(logs)} partitions are spread over {partitions} by their keys, as Kafka's producers do; "
            f"what stood in one partition keeps its order, and groups may read records again{memory}"
        ),
    )
