"""What an export of a cluster says of records that it lacks."""

from logkeep.kafka.datasets.sources.cluster_facts import hanging_transactions
from logkeep.kafka.datasets.values import ExportableLog
from logkeep.kafka.record.dataset_document import DatasetLog
from logkeep.kafka.record.documents import OpenTransaction
from logkeep.model.findings import Severity


def test_a_transaction_that_no_coordinator_knows_is_named_where_it_holds_an_exported_log() -> None:
    undecided = [OpenTransaction("payments", number, 4711, 90) for number in (0, 1)]
    (found,) = hanging_transactions(undecided, [ExportableLog(DatasetLog("payments", 1), "a" * 32, 0, 90, broker=1)])
    assert (found.code, found.severity) == ("transaction-undecided", Severity.WARNING)
    assert found.where == "payments/1 from offset 90"
    assert "producer 4711" in found.what
