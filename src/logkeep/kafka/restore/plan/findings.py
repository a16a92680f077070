"""Findings of a restore plan: the point in time, the cost of keeping offsets, gaps, and keys deleted later. Pure."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from logkeep.kafka.record.documents import TopicRecord
from logkeep.kafka.restore.facts.survey_task import Cut, LogSurvey
from logkeep.kafka.restore.facts.target import TargetFacts
from logkeep.kafka.restore.facts.units import Offsets
from logkeep.kafka.restore.plan.duration import bound_word, duration_text, preserve_s, together_s
from logkeep.kafka.restore.plan.torn_transactions import torn_findings
from logkeep.kafka.restore.plan.values import PlanOptions, RestorePlan
from logkeep.model.findings import Finding, Severity
from logkeep.model.plurals import plural
from logkeep.model.segments import LogName
from logkeep.model.time import rfc3339
from logkeep.repository.backups.manifest import KnownGap
from logkeep.repository.chain.fold import Burial


def deleted_later_findings(
    plan: RestorePlan, burials: Mapping[LogName, Sequence[Burial]], cuts: Mapping[LogName, int], until_ms: int | None
) -> list[Finding]:
    """Findings about logs that end earlier than the backup: keys that were deleted after that end are left out too."""
    early = [log for log in plan.logs if log.log in burials and (until_ms is not None or log.end < cuts[log.log])]
    return [_deleted_later(log.log, burials[log.log]) for log in early]


def _deleted_later(log: LogName, burials: Sequence[Burial]) -> Finding:
    first = min(b.first for b in burials)
    return Finding(
        code="deleted-later",
        severity=Severity.WARNING,
        where=str(log),
        what=f"records of keys that were deleted before backup {first} are left out, although some of these keys may "
        "have existed at the chosen point",
        remedy=f"restore a backup before {first} to get them",
    )


def tear_findings(plan: RestorePlan) -> list[Finding]:
    return torn_findings(plan.torn or (), left_out=bool(plan.whole_transactions))


def point_in_time_findings(surveys: Sequence[LogSurvey], options: PlanOptions) -> list[Finding]:
    """How the requested time applies to these logs, and the time as it was parsed."""
    if options.until_ms is None:
        return []
    moment = rfc3339(datetime.fromtimestamp(options.until_ms / 1000, UTC))
    if options.by_record:
        what = f"every record with a time from {moment} on is left out, at any offset"
    else:
        cut, before = (sum(s.cut is each for s in surveys) for each in (Cut.MADE, Cut.BEFORE))
        what = (
            f"up to {moment}: {cut} of {plural(len(surveys), 'partition ends', 'partitions end')} before the first "
            f"record from then on, {plural(before, 'has', 'have')} nothing older, "
            f"{plural(len(surveys) - cut - before, 'ends', 'end')} earlier anyway. Older records after the first "
            "later one are not restored"
        )
    remedy = "" if options.by_record else "if producers set times out of order, --by-record leaves out single records"
    return [Finding(code="until-time", severity=Severity.NOTE, where="--until-time", what=what, remedy=remedy)]


def appended_findings(target: TargetFacts, topics: Sequence[tuple[TopicRecord, str]]) -> list[Finding]:
    return [
        Finding(
            code="appended",
            severity=Severity.NOTE,
            where=name,
            what=f"it holds up to {plural(target.topics[name].records, 'record')} already: restored ones are appended",
        )
        for _, name in topics
        if name in target.topics and target.topics[name].records
    ]


def cost_findings(surveys: Sequence[LogSurvey], offsets: Offsets, at_once: int) -> list[Finding]:
    """How long it takes to keep offsets."""
    seconds = together_s([preserve_s(s) for s in surveys], at_once)
    if offsets is not Offsets.PRESERVE or seconds < 60:
        return []
    return [
        Finding(
            code="offsets-cost",
            severity=Severity.NOTE,
            where="--offsets preserve",
            what=f"filling holes and the offsets before the first takes {bound_word(surveys)} {duration_text(seconds)}",
            remedy="--offsets translate avoids it, and adjusts the offsets of groups",
        )
    ]


def gap_findings(gaps: Sequence[KnownGap]) -> list[Finding]:
    """Ranges that the archive lacks; reported before and after the restore."""
    return [
        Finding(
            code="gap",
            severity=Severity.WARNING,
            where=f"{gap.log.name}/{gap.log.partition}",
            what=f"offsets [{gap.start}, {gap.end}) are not in the backup and cannot be restored: {gap.reason}",
        )
        for gap in gaps
    ]
