"""What an import takes from `.logkeep/dataset.json`, and what a restore of the backup finds of it."""

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from logkeep.engine.inline import InlineEngine
from logkeep.errors import Damaged
from logkeep.kafka.admin.security import AclBinding, Quota
from logkeep.kafka.importing.recognise import open_dataset
from logkeep.kafka.importing.run import ImportDone, ImportOptions, KafkaImport
from logkeep.kafka.record.dataset_document import DatasetLog
from logkeep.kafka.record.documents import AclRecord, ClusterRecord, QuotaRecord
from logkeep.kafka.record.stored_record import last_record
from logkeep.kafka.restore.security import plan_acls, plan_quotas
from logkeep.model.findings import Severity
from logkeep.model.time import random_token, utc_now
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.store.local.store import LocalStore
from tests.support.kafka.listed_exports import ListedExports, ListedSource, exportable, exportable_logs, rows
from tests.support.kafka.whole_backups import new_place

LOG = DatasetLog("o", 0)
ACL = AclRecord("TOPIC", "o", "LITERAL", "User:shop", "*", "READ", "ALLOW")
QUOTA = QuotaRecord((("user", "shop"),), (("producer_byte_rate", 1000.0),))
BROKERS = {"retention.ms": "-1", "cleanup.policy": "compact"}


@pytest.fixture
def place(tmp_path: Path) -> SourceRef:
    return new_place(tmp_path / "repository", "old")


def exported(root: Path, *acls: AclRecord) -> None:
    facts = exportable_logs(exportable("o", 0, 0, 3))
    topics = tuple(msgspec.structs.replace(topic, inherited=BROKERS) for topic in facts.topics)
    known = replace(facts, topics=topics, acls=acls, quotas=(QUOTA,))
    ListedExports(root).run(ListedSource(known, {LOG: rows(0, 1, 2)}))


def imported(place: SourceRef, root: Path, **changed: object) -> ImportDone:
    reader = replace(open_dataset(LocalStore(root)), **changed)  # type: ignore[arg-type]  # a test's own values
    return KafkaImport(place, reader, str(root), utc_now, random_token).run(ImportOptions(), InlineEngine())


def record_of(place: SourceRef) -> ClusterRecord:
    found = last_record(place, read_chain(place))
    assert found is not None
    return found


def test_permissions_and_configs_of_brokers_come_along(place: SourceRef, tmp_path: Path) -> None:
    exported(tmp_path / "d", ACL)
    imported(place, tmp_path / "d")
    record = record_of(place)
    assert (record.acls, record.quotas, record.topics[0].inherited) == ((ACL,), (QUOTA,), BROKERS)
    assert plan_acls(record.acls, (), {"o": "new"}).add == (
        AclBinding("TOPIC", "new", "LITERAL", "User:shop", "*", "READ", "ALLOW"),
    )
    assert plan_quotas(record.quotas, ()).add == (Quota((("user", "shop"),), (("producer_byte_rate", 1000.0),)),)
    assert not imported(place, tmp_path / "d").changed


def test_rules_that_changed_are_a_new_backup_and_a_dataset_without_them_removes_none(
    place: SourceRef, tmp_path: Path
) -> None:
    exported(tmp_path / "d", ACL)
    imported(place, tmp_path / "d")
    denied = msgspec.structs.replace(ACL, permission="DENY")
    exported(tmp_path / "d", ACL, denied)
    assert imported(place, tmp_path / "d").changed
    assert not imported(place, tmp_path / "d", acls=None, quotas=()).changed
    record = record_of(place)
    assert (record.acls, record.quotas, record.topics[0].inherited) == ((ACL, denied), (QUOTA,), BROKERS)


def test_records_that_may_be_aborted_are_counted(place: SourceRef, tmp_path: Path) -> None:
    exported(tmp_path / "d")
    document = tmp_path / "d" / ".logkeep" / "dataset.json"
    text = document.read_text()
    unknown = "which records belong to aborted transactions"
    assert unknown not in open_dataset(LocalStore(tmp_path / "d")).label.unknown
    document.write_text(text.replace('"isolation":"committed"', '"isolation":"all"'))
    assert unknown in open_dataset(LocalStore(tmp_path / "d")).label.unknown
    (finding,) = (f for f in imported(place, tmp_path / "d").findings if f.severity is not Severity.NOTE)
    assert (finding.code, finding.where, finding.what.partition(" of")[0]) == ("aborted-records", "o/0", "3 records")


def test_a_rule_that_no_cluster_could_have_is_refused(place: SourceRef, tmp_path: Path) -> None:
    """A restore with --what acls would fail after its records."""
    exported(tmp_path / "d", msgspec.structs.replace(ACL, operation="FLY"))
    with pytest.raises(Damaged, match="'FLY'"):
        imported(place, tmp_path / "d")
    assert read_chain(place).completed == ()
