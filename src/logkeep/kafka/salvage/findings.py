"""What a salvage has to tell about its logs besides what each disk says. Pure."""

from collections.abc import Iterable, Sequence

import msgspec

from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.disks.metadata_image import ClusterImage
from logkeep.kafka.salvage.decide import Decided
from logkeep.kafka.salvage.groups_task import SalvagedGroups
from logkeep.kafka.salvage.survey_task import Survey
from logkeep.model.findings import Finding, Severity
from logkeep.model.ranges import Range
from logkeep.repository.backups.manifest import KnownGap

INCOMPLETE = "positions-incomplete"
LOST = frozenset({"lost-tail"})
"""Codes of findings that mean lost records, as gaps do."""


def about_copies(surveys: Iterable[Survey], image: ClusterImage | None) -> list[Finding]:
    """Copies that differ, and holes where a topic that is not compacted has no reason to have one."""
    found = []
    for survey in surveys:
        log = str(TopicPartition(survey.topic, survey.partition))
        for index, offset in survey.differences:
            what = f"the copy in {survey.scans[index].directory} differs from the one that is taken at offset {offset}"
            found.append(_warning("copies-differ", log, what))
        if image is None or survey.topic not in image.topics or not image.compacted(survey.topic):
            found += [
                _warning("missing-offsets", log, _missing(scan.directory, scan.between_files, sure=image is not None))
                for scan in survey.scans
                if scan.holes
            ]
    return found


def _missing(directory: str, holes: Sequence[Range], *, sure: bool) -> str:
    more = f" and {len(holes) - 1} more such ranges" if len(holes) > 1 else ""
    why = (
        "a file is missing"
        if sure
        else "a file is missing, unless the topic is compacted, which these disks do not tell"
    )
    return f"{directory}: no file holds offsets {holes[0]}{more}: {why}"


def about_tiers(surveys: Iterable[Survey], image: ClusterImage | None) -> list[Finding]:
    """Logs whose older part was moved to a remote store: only what is on the disks is salvaged."""
    return [
        _warning(
            "tiered",
            str(TopicPartition(s.topic, s.partition)),
            f"its topic has tiered storage: what lies before offset {min(scan.start for scan in s.scans)} may be in "
            "the remote store, and is not salvaged",
        )
        for s in surveys
        if image is not None and image.tiered(s.topic)
    ]


def about_histories(decided: Iterable[Decided]) -> list[Finding]:
    return [
        _warning(
            "new-history",
            str(d.found.log),
            f"the log on these disks does not continue what is archived of it ({d.cause}); it begins a new history, "
            "and earlier backups keep what it was",
        )
        for d in decided
        if d.cause.new_history
    ]


def about_positions(found: Sequence[SalvagedGroups], expected: int, share_groups: Sequence[str]) -> list[Finding]:
    """What is not known of groups."""
    findings = []
    if len(found) < expected or not expected:
        what = f"{len(found)} of {expected or 'unknown'} partitions of __consumer_offsets are on these disks"
        findings.append(_warning(INCOMPLETE, "groups", f"{what}: positions of some groups may be missing"))
    if unreadable := sum(p.unreadable for p in found):
        findings.append(_warning("positions-unreadable", "groups", f"{unreadable} records about groups cannot be read"))
    if undecided := sum(p.undecided for p in found):
        what = f"{undecided} positions belong to transactions that were never decided, and do not count"
        findings.append(Finding(code="positions-undecided", severity=Severity.NOTE, where="groups", what=what))
    findings += [
        _warning("share-positions", f"group {name}", "positions of share groups are not read from disks")
        for name in share_groups
    ]
    return findings


def with_reasons(gaps: Iterable[KnownGap], decided: Iterable[Decided], planned: Iterable[KnownGap]) -> list[KnownGap]:
    """Gaps that the copy met, with the damage that made them."""
    by_log = {d.found.log: d for d in decided}
    known = set(planned)
    told = []
    for gap in gaps:
        here = by_log.get(TopicPartition(gap.log.name, gap.log.partition))
        told.append(gap if gap in known or here is None else msgspec.structs.replace(gap, reason=_reason(gap, here)))
    return told


def _reason(gap: KnownGap, decided: Decided) -> str:
    scan = decided.found.taken
    for damage in scan.damages:
        if damage.lost is not None and damage.lost.start <= gap.start and gap.end <= damage.lost.end:
            return f"{scan.directory}/{damage.file} is damaged at byte {damage.at_byte}: {damage.reason}"
    return "no good copy is on these disks"


def _warning(code: str, where: str, what: str) -> Finding:
    return Finding(code=code, severity=Severity.WARNING, where=where, what=what)
