"""A restore of a trimmed backup: what its plan says, and a plan that was made before the trim."""

from typing import cast

import pytest

from logkeep.errors import UsageError
from logkeep.kafka.record.backup_view import KafkaBackupView
from logkeep.kafka.record.documents import ClusterRecord, PartitionRecord
from logkeep.kafka.record.stored_record import begun_with
from logkeep.model.findings import Severity
from logkeep.model.ranges import Range
from logkeep.model.segments import Collection, LogName
from logkeep.repository.backups.manifest import LogCut, Manifest
from logkeep.repository.backups.trim_floors import TrimmedCut
from logkeep.repository.chain.actions import ObjectRef, Summary
from logkeep.repository.chain.fold import BackupEntry

LOG, OTHER = (LogName(Collection.TOPICS, name, "a" * 32, 0) for name in ("orders", "payments"))
SUMMARY = Summary(started="", logs=1, segments=1, records=1, stored_bytes=1, new_bytes=1)
ENTRY = BackupEntry(id=7, generation=1, committed="", manifest=ObjectRef("0" * 16, 1, "0" * 64), summary=SUMMARY)


def view() -> KafkaBackupView:
    unused = cast("Manifest", None)
    return KafkaBackupView(
        place=cast("object", None),  # type: ignore[arg-type]
        entry=ENTRY,
        manifest=unused,
        record=cast("ClusterRecord", None),
        rows=cast("object", None),  # type: ignore[arg-type]
        trimmed=(TrimmedCut(LOG, 10, 50),),
    )


def test_the_plan_warns_of_trimmed_topics_that_it_restores() -> None:
    (finding,) = view().trim_findings([LOG, OTHER])
    assert (finding.code, finding.severity, finding.where) == ("trimmed", Severity.WARNING, "orders")
    assert "partition 0 begins at 50 instead of 10" in finding.what
    assert view().trim_findings([OTHER]) == []


@pytest.mark.parametrize("span", [Range(10, 90), Range(49, 90), Range(10, 40)])
def test_a_plan_that_needs_trimmed_offsets_is_refused(span: Range) -> None:
    with pytest.raises(UsageError, match="orders/0 was trimmed since this restore was planned: it begins at offset 50"):
        view().refuse_trimmed({LOG: span, OTHER: Range(0, 9)})


@pytest.mark.parametrize("span", [Range(50, 90), Range(60, 90), Range(40, 40)])
def test_a_plan_that_needs_none_of_them_is_resumed(span: Range) -> None:
    view().refuse_trimmed({LOG: span})


def test_the_record_of_a_trimmed_backup_begins_where_its_manifest_does() -> None:
    logs = tuple(
        PartitionRecord(
            topic=log.name, partition=0, history=log.history, start=10, end=90, last_stable=90, last_epoch=1
        )
        for log in (LOG, OTHER)
    )
    record = ClusterRecord(
        repository="r", source="s", id=7, cluster_id="c", topics=(), logs=logs, open_transactions=(), groups=(),
        acls=None, quotas=(),
    )  # fmt: skip
    manifest = Manifest(
        repository="r", source="s", id=7, run="", kind="kafka", identity={}, started="", finished="", base=None,
        cut=(LogCut(LOG, 50, 90), LogCut(OTHER, 10, 90)), parts=(),
    )  # fmt: skip
    assert [log.start for log in begun_with(record, manifest).logs] == [50, 10]
    assert begun_with(record, Manifest(
        repository="r", source="s", id=7, run="", kind="kafka", identity={}, started="", finished="", base=None,
        cut=(LogCut(LOG, 10, 90),), parts=(),
    )) is record  # fmt: skip
