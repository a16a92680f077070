"""The report of a backup's contents, from documents and totals alone."""

import msgspec
import pytest

from logkeep.cli.terminal.text import TerminalStyle, cell_width
from logkeep.cli.verbs.kafka.info import (
    gap_lines,
    group_table,
    moment,
    needs_lines,
    overview,
    topic_details,
    topic_table,
)
from logkeep.kafka.logs.log_traits import LogTraits
from logkeep.kafka.record.contents import KafkaReport, report
from logkeep.kafka.record.documents import ClusterRecord, CommitRecord, GroupRecord, PartitionRecord, TopicRecord
from logkeep.model.findings import Finding, Severity
from logkeep.model.segments import Collection, LogName
from logkeep.repository.backups.manifest import KnownGap, LogCut, Manifest
from logkeep.repository.parts import LogTotals
from tests.golden.test_kafka_record_golden import RECORD

_ID = "0" * 31 + "a"


def _log(topic: str, partition: int, history: str = _ID) -> LogName:
    return LogName(Collection.TOPICS, topic, history, partition)


def _record(*, traits: LogTraits | None = None) -> ClusterRecord:
    return msgspec.structs.replace(
        RECORD,
        topics=(
            TopicRecord("small", _ID, False, 1, 3, {}),
            TopicRecord("large", _ID, False, 2, 2, {"cleanup.policy": "compact"}),
        ),
        logs=(
            PartitionRecord("small", 0, _ID, 0, 10, 10, 1, traits=traits),
            PartitionRecord(
                "large", 0, f"{_ID}-2", 100, 200, 150, 1, traits=LogTraits(900, ("zstd",), transactional=True)
            ),
            PartitionRecord("large", 1, _ID, 0, 50, 50, 1, traits=LogTraits(100, ("none",))),
        ),
        groups=(
            GroupRecord("near", "classic", "Empty", "", (CommitRecord("small", 0, 9, 9, -1, ""),)),
            GroupRecord(
                "far", "consumer", "Stable", "",
                (
                    CommitRecord("large", 0, 50, 50, -1, ""),
                    CommitRecord("large", 1, 50, 70, -1, ""),
                    CommitRecord("elsewhere", 0, 5, 5, -1, ""),
                ),
            ),
            GroupRecord("new", "classic", "Empty", "", ()),
        ),
        open_transactions=(msgspec.structs.replace(RECORD.open_transactions[0], topic="large"),),
    )  # fmt: skip


MANIFEST = Manifest(
    repository="0" * 32,
    source="prod",
    id=20261116001348,
    run="run",
    kind="kafka",
    identity={},
    started="",
    finished="",
    base=None,
    cut=(LogCut(_log("small", 0), 0, 10),),
    parts=(),
    gaps=(KnownGap(_log("large", 0, f"{_ID}-2"), 90, 100, "retention removed it"),),
    findings=(Finding(code="new-history", severity=Severity.WARNING, where="large/0", what="the log lost its end"),),
)
TOTALS = {
    _log("large", 0, f"{_ID}-2"): LogTotals(2, 80, 5000, 6000, 1000, 2000),
    _log("large", 1): LogTotals(1, 50, 3000, 3000, -1, -1),
}


def _report(*, traits: LogTraits | None = None) -> KafkaReport:
    return report(_record(traits=traits), MANIFEST, TOTALS)


def test_topics_by_size_with_ranges_times_and_histories() -> None:
    large, small = _report().topics
    assert (large.name, large.stored_bytes, large.records, large.offsets) == ("large", 8000, 130, 150)
    assert (large.oldest_ms, large.newest_ms, small.oldest_ms) == (1000, 2000, None)
    assert [(p.histories, p.began) for p in large.logs] == [(3, "the log lost its end"), (1, None)]
    assert (large.missing, large.open_transactions, small.missing) == (10, 1, 0)
    assert large.gaps[0].reason == "retention removed it"


def test_groups_by_lag() -> None:
    far, near, new = _report().groups
    assert [(g.name, g.lag) for g in (far, near, new)] == [("far", 150), ("near", 1), ("new", 0)]
    large, elsewhere = far.topics
    assert (large.lag, large.below_start, large.clamped, large.partitions) == (150, 1, 1, 2)
    assert elsewhere.lag is None
    assert new.topics == ()


def test_what_is_not_known_is_not_made_up() -> None:
    unknown, known = _report().needs, _report(traits=LogTraits()).needs
    assert (unknown.largest_batch_bytes, unknown.codecs) == (None, None)
    assert (known.largest_batch_bytes, known.codecs) == (900, ("none", "zstd"))
    assert (known.disk_bytes, known.replicas, known.brokers) == (9000 * 2, 3 + 4, 3)
    assert any("compacted" in line for line in known.features)


def test_lines_fit_a_narrow_terminal() -> None:
    found, look = _report(), TerminalStyle(unicode=True, width=80)
    lines = [
        *topic_table(found.topics, look, every=False),
        *(line for topic in found.topics for line in topic_details(topic, look)),
        *gap_lines(found.topics, look, every=False),
        *group_table(found.groups, look, every=False),
        *needs_lines(found.needs, MANIFEST.id, look),
    ]
    for line in "\n".join(lines).splitlines():
        assert cell_width(line) <= 80, line


def test_any_time_can_be_shown() -> None:
    look = TerminalStyle(zone=None)
    assert moment(None, look) == "-"
    assert moment(2**62, look) == f"{2**62} ms"
    assert len(moment(0, look)) == 16


@pytest.mark.parametrize(
    ("code", "what", "why"),
    [
        (
            "not-asked",
            "ACLs are not in this backup: no right to list ACLs",
            "no right to list ACLs",
        ),
        ("metadata-missing", "no metadata log is readable", "no metadata log was readable"),
        ("new-history", "the log lost its end", "no authorizer was found"),
    ],
)
def test_it_says_why_acls_are_unknown(code: str, what: str, why: str) -> None:
    found = Finding(code=code, severity=Severity.WARNING, where="cluster", what=what)
    record = msgspec.structs.replace(_record(), acls=None)
    unknown = report(record, msgspec.structs.replace(MANIFEST, findings=(found,)), TOTALS)
    assert (unknown.acls, unknown.acls_unknown) == (None, why)
    assert f"ACLs unknown ({why})" in overview(unknown, None)["besides"]
    assert report(msgspec.structs.replace(record, acls=()), MANIFEST, TOTALS).acls_unknown is None
