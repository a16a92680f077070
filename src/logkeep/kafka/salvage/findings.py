"""Findings of a salvage about copies, tiers, histories and groups. Pure."""

from collections.abc import Iterable, Sequence

import msgspec

from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.disks.metadata_image import ClusterImage
from logkeep.kafka.salvage.decide import LogDecision
from logkeep.kafka.salvage.groups_task import SalvagedGroups
from logkeep.kafka.salvage.survey_task import SalvageSurvey
from logkeep.model.findings import Finding, Severity, warning
from logkeep.model.plurals import plural
from logkeep.model.ranges import Range
from logkeep.repository.backups.manifest import KnownGap

INCOMPLETE = "positions-incomplete"
LOST = frozenset({"lost-tail"})
"""Codes of findings that mean lost records, like gaps."""


def copy_findings(surveys: Iterable[SalvageSurvey], image: ClusterImage | None) -> list[Finding]:
    """Copies that differ, and missing offsets in topics that are not compacted."""
    found = []
    for survey in surveys:
        log = str(TopicPartition(survey.topic, survey.partition))
        for index, offset in survey.differences:
            what = f"the copy in {survey.scans[index].directory} differs from the chosen one at offset {offset}"
            found.append(warning("copies-differ", log, what))
        if image is None or survey.topic not in image.topics or not image.compacted(survey.topic):
            found += [
                warning("missing-offsets", log, _missing(scan.directory, scan.between_files, sure=image is not None))
                for scan in survey.scans
                if scan.holes
            ]
    return found


def _missing(directory: str, holes: Sequence[Range], *, sure: bool) -> str:
    more = f" and {plural(len(holes) - 1, 'more such range')}" if len(holes) > 1 else ""
    why = (
        "a file is missing"
        if sure
        else "a file is missing, unless the topic is compacted, which these disks do not show"
    )
    return f"{directory}: no file holds offsets {holes[0]}{more}: {why}"


def tier_findings(surveys: Iterable[SalvageSurvey], image: ClusterImage | None) -> list[Finding]:
    """Logs whose older part was moved to a remote store: only the part on the disks is salvaged."""
    return [
        warning(
            "tiered",
            str(TopicPartition(s.topic, s.partition)),
            f"its topic has tiered storage: offsets before {min(scan.start for scan in s.scans)} may be in the remote "
            "store, and are not salvaged",
        )
        for s in surveys
        if image is not None and image.tiered(s.topic)
    ]


def history_findings(decided: Iterable[LogDecision]) -> list[Finding]:
    return [
        warning(
            "new-history",
            str(d.found.log),
            f"the log on these disks does not continue the archived one ({d.cause}); it starts a new history, and "
            "earlier backups are unchanged",
        )
        for d in decided
        if d.cause.new_history
    ]


def group_findings(found: Sequence[SalvagedGroups], expected: int, share_groups: Sequence[str]) -> list[Finding]:
    """Groups and offsets that could not be read."""
    findings = []
    if len(found) < expected or not expected:
        what = f"{len(found)} of {expected or 'unknown'} partitions of __consumer_offsets are on these disks"
        findings.append(warning(INCOMPLETE, "groups", f"{what}: offsets of some groups may be missing"))
    if unreadable := sum(p.unreadable for p in found):
        what = f"{plural(unreadable, 'record')} about groups cannot be read"
        findings.append(warning("positions-unreadable", "groups", what))
    if undecided := sum(p.undecided for p in found):
        what = f"{plural(undecided, 'group offset')} of transactions without a marker: not counted"
        findings.append(Finding(code="positions-undecided", severity=Severity.NOTE, where="groups", what=what))
    findings += [
        warning("share-positions", f"group {name}", "offsets of share groups are not read from disks")
        for name in share_groups
    ]
    return findings


def with_reasons(
    gaps: Iterable[KnownGap], decided: Iterable[LogDecision], planned: Iterable[KnownGap]
) -> list[KnownGap]:
    """The gaps of the copy, with the damage that caused them."""
    by_log = {d.found.log: d for d in decided}
    known = set(planned)
    explained = []
    for gap in gaps:
        here = by_log.get(TopicPartition(gap.log.name, gap.log.partition))
        explained.append(
            gap if gap in known or here is None else msgspec.structs.replace(gap, reason=_reason(gap, here))
        )
    return explained


def _reason(gap: KnownGap, decided: LogDecision) -> str:
    scan = decided.found.taken
    for damage in scan.damages:
        if damage.lost is not None and damage.lost.start <= gap.start and gap.end <= damage.lost.end:
            return f"{scan.directory}/{damage.file} is damaged at byte {damage.at_byte}: {damage.reason}"
    return "these disks have no undamaged copy"
