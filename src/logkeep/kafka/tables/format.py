"""The format `logkeep` of Spark: the visible records of a backup, as Spark's own Kafka source would read them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from logkeep.errors import UsageError
from logkeep.kafka.record.backup_view import KafkaBackupView, view_backup
from logkeep.kafka.scan.open_backup import complete_by
from logkeep.kafka.scan.read import read_range
from logkeep.kafka.tables.columns import spark_columns
from logkeep.kafka.tables.decoded_columns import JsonColumns
from logkeep.kafka.tables.filters import bounds_of
from logkeep.kafka.tables.options import TableOptions, parse_options
from logkeep.kafka.tables.plan import TableUnit, plan_units
from logkeep.model.table_format import ColumnFilter
from logkeep.model.time import utc_now
from logkeep.repository.access import open_repository
from logkeep.repository.backups.source import view
from logkeep.repository.chain.owner import this_process
from logkeep.store.access import open_store
from logkeep.store.readonly import ReadOnlyStore
from logkeep.store.retrying import RetryingStore, RetryLimits

_CLIENT = "kafka."
_KEPT = "kafka.isolation.level"


@dataclass(frozen=True)
class KafkaTables:
    """Implements `model.table_format.TableFormat`."""

    def schema(self, options: Mapping[str, str]) -> str:
        return parse_options(options).schema

    def kept_options(self, options: Mapping[str, str]) -> dict[str, str]:
        """The options without those of a Kafka client, which may have its password among them."""
        lower = {name.lower(): value for name, value in options.items()}
        kept = {name: value for name, value in lower.items() if name == _KEPT or not name.startswith(_CLIENT)}
        return kept | {"pushdown": str(parse_options(options).pushdown).lower()}

    def units(self, options: Mapping[str, str], filters: Sequence[ColumnFilter]) -> list[TableUnit]:
        wanted = parse_options(options)
        return plan_units(open_view(wanted), wanted, bounds_of(filters))

    def rows(self, unit: TableUnit) -> Iterator[pa.RecordBatch]:
        as_json = JsonColumns(unit.schemas).column
        for each in unit.ranges:
            for records in read_range(each):
                yield spark_columns(records, each.log.name, each.log.partition, unit.columns, as_json)


def open_view(wanted: TableOptions) -> KafkaBackupView:
    """The backup that the options name. It is not held: the end of a query is not known here."""
    store = RetryingStore(ReadOnlyStore(open_store(wanted.repo)), RetryLimits())
    try:
        place = open_repository(store).choose(wanted.source)
    except UsageError as error:
        error.remedy = error.remedy.replace("with --source", "with the option source")
        raise
    found = view(place, utc_now(), this_process("reader"))
    if wanted.finished_by is not None:
        return view_backup(place, complete_by(found.folded, wanted.finished_by, place.source))
    return view_backup(place, found.completed(wanted.backup))
