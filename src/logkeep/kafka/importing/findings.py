"""What an import reports: doubts of readers, in words, with their counts."""

from collections.abc import Iterable, Iterator

from logkeep.kafka.importing.reader import DatasetTopic
from logkeep.kafka.importing.values import PartitionSurvey
from logkeep.model.findings import Finding, Severity
from logkeep.model.plurals import plural

_W, _N = Severity.WARNING, Severity.NOTE
_TEXTS = {
    "torn-bytes": (_W, "byte", "of torn writes between records; the index shows that no record is there"),
    "torn-tail": (_W, "byte", "after the last whole record; the tool was killed, or still writes"),
    "records-not-indexed": (_N, "record", "that the index does not list; they were read one after another"),
    "index-inconsistent": (_W, "place", "where an index does not fit its records; they were read without it"),
    "partition-index-torn": (_W, "byte", "of a torn entry at the end of the partition index"),
    "segments-expired": (_W, "segment", "at the beginning of the partition that are listed and were removed"),
    "start-missing": (_W, "offset", "at the beginning, of files that the dataset had; no `prune` has deleted them"),
    "segment-not-listed": (_W, "segment", "that no partition index lists; read all the same"),
    "overlapping-records": (_W, "record", "that the dataset has more than once; the first one is imported"),
    "markers": (_W, "record", "that are transaction markers, or look like one; the tool archived them as records"),
    "aborted-records": (_W, "record", "of a dataset with --isolation all; nothing shows which of them are aborted"),
    "producer-times": (_W, "record", "of a topic with append times: the tool archived the producer's time instead"),
    "null-or-empty": (_W, "field", "of length 0, key or value, that may have been null: the tool wrote both alike"),
    "java-headers": (_W, "header", "in Java's serialisation decoded; numbers and booleans became text again"),
    "java-headers-raw": (_W, "header", "in a Java serialisation that cannot be decoded, kept as it is"),
    "headers-unordered": (_W, "record", "with headers from a map: order and repeated names are not known"),
}
"""Severity, what is counted, and what it means."""


def doubt_text(code: str, count: int) -> tuple[Severity, str]:
    severity, unit, what = _TEXTS[code]
    return severity, f"{plural(count, unit)} {what}"


def doubt_findings(surveys: Iterable[PartitionSurvey]) -> Iterator[Finding]:
    for each in surveys:
        where = f"{each.topic}/{each.partition}"
        for doubt in each.doubts:
            severity, text = doubt_text(doubt.code, doubt.count)
            yield Finding(code=doubt.code, severity=severity, where=where, what=f"{text}; the first: {doubt.first}")
        if each.unarchived:
            what = (
                f"{plural(each.unarchived, 'record')} at offsets that an earlier import archived without a record; "
                "they are not imported"
            )
            yield Finding(code="not-archived-before", severity=Severity.WARNING, where=where, what=what)


def count_findings(topics: Iterable[DatasetTopic], named: Iterable[str]) -> Iterator[Finding]:
    """Topics whose number of partitions nothing says."""
    known = set(named)
    for topic in topics:
        if topic.partitions is None and topic.name not in known:
            yield Finding(
                code="partition-count-unknown",
                severity=Severity.NOTE,
                where=topic.name,
                what="nothing says how many partitions it had: those with files are counted",
                remedy=f"--partition-count {topic.name}=N",
            )
