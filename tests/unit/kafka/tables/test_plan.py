"""What a table reads of a backup: the rows that options and filters ask for, and few others."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from logkeep.errors import DataGap, UsageError
from logkeep.kafka.scan.read import read_range
from logkeep.kafka.scan.values import ScanCounters
from logkeep.kafka.tables.catalogue import CATALOGUE
from logkeep.kafka.tables.format import KafkaTables, open_view
from logkeep.kafka.tables.options import parse_options
from logkeep.model.table_format import ColumnFilter
from logkeep.repository.chain.commits import read_chain
from tests.support.kafka.compacted_backups import source_with_a_gap
from tests.support.kafka.offline_restore import Backed, backed_up
from tests.support.kafka.slow_records import Slow, batch_of
from tests.support.kafka.table_logs import BATCHES, IN_A_BATCH, START_MS, all_rows, back_up_tables

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def backed(tmp_path_factory: pytest.TempPathFactory) -> Backed:
    return back_up_tables(tmp_path_factory.mktemp("tables"))


def _read(backed: Backed, *filters: ColumnFilter, **options: str) -> list[tuple[Any, ...]]:
    given = {"repo": backed.place.store.url, "includeHeaders": "true", **options}
    given = {name: value for name, value in given.items() if value}
    units = KafkaTables().units(given, filters)
    batches = [batch for unit in units for batch in KafkaTables().rows(unit)]
    return [tuple(_plain(v) for v in row.values()) for batch in batches for row in batch.to_pylist()]


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return (value - _EPOCH) // timedelta(milliseconds=1)
    return tuple((h["key"], h["value"]) for h in value) if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("options", "topics"),
    [
        ({}, ()),
        ({"subscribe": "orders"}, ("orders",)),
        ({"subscribe": "orders,my-topic.x"}, ("my-topic.x", "orders")),
        ({"subscribePattern": "[a-z].*"}, ("my-topic.x", "orders")),
        ({"subscribe": "orders", "isolation": "all"}, ("orders",)),
        ({"subscribe": "orders", "minPartitions": "7"}, ("orders",)),
    ],
)
def test_rows_are_those_of_the_log(backed: Backed, options: dict[str, str], topics: tuple[str, ...]) -> None:
    expected = [row.spark() for row in all_rows(*topics, isolation=options.get("isolation", "committed"))]
    assert sorted(_read(backed, **options), key=str) == sorted(expected, key=str)


def test_offsets_times_and_partitions_limit_what_is_read(backed: Backed) -> None:
    found = _read(
        backed,
        assign='{"orders": [1]}',
        startingOffsets='{"orders": {"1": 100}}',
        endingTimestamp=str(START_MS + 12_005),
    )
    wanted = [r for r in all_rows("orders") if r.partition == 1 and r.offset >= 100]
    reached = min(r.offset for r in wanted if r.time_ms >= START_MS + 12_005)
    assert found == [r.spark() for r in wanted if r.offset < reached]


def test_units_are_as_many_as_asked_for(backed: Backed) -> None:
    def units(**options: str) -> int:
        return len(KafkaTables().units({"repo": backed.place.store.url, **options}, ()))

    assert units() == 1, "small logs are read together"
    assert units(minPartitions="4") >= 4
    assert units(subscribe="orders", minPartitions="7") >= 7


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"subscribe": "oders"}, "no topic 'oders'"),
        ({"assign": '{"orders": [7]}'}, "no partition 7"),
        ({"source": "test"}, "no source is called 'test'"),
        ({"versionAsOf": "1"}, "no backup has the id 1"),
        ({"timestampAsOf": "2001-01-01"}, "no backup was complete at 2001"),
    ],
)
def test_what_is_not_there_is_refused(backed: Backed, options: dict[str, str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        _read(backed, **options)


def test_a_backup_is_named_by_its_id_or_by_a_time(backed: Backed) -> None:
    whole = _read(backed, subscribe="orders")
    assert _read(backed, subscribe="orders", versionAsOf=str(backed.backup)) == whole
    assert _read(backed, subscribe="orders", timestampAsOf="2100-01-01") == whole


def test_filters_leave_out_only_what_they_exclude(backed: Backed) -> None:
    time = _EPOCH + timedelta(milliseconds=START_MS + 5000)
    filters = [
        ColumnFilter("topic", "in", ("orders", "nothing")),
        ColumnFilter("partition", "=", 1),
        ColumnFilter("offset", "<=", 200),
        ColumnFilter("timestamp", ">=", time),
    ]
    found = _read(backed, *filters)
    wanted = [r for r in all_rows("orders") if r.partition == 1 and r.offset <= 200 and r.time_ms >= START_MS + 5000]
    assert found == [r.spark() for r in wanted]


def test_a_filter_of_no_log_reads_nothing(backed: Backed) -> None:
    assert _read(backed, ColumnFilter("topic", "=", "nothing")) == []


def test_a_time_window_reads_its_batches_and_few_others(tmp_path: Path) -> None:
    """A log of 6 MB, whose objects are read by their index."""
    batches = [
        batch_of(
            base, [Slow(0, 0, b"k", bytes(range(256)) * 120)], None, base_time_ms=base * 1000, max_time_ms=base * 1000
        )
        for base in range(200)
    ]
    backed = backed_up(tmp_path, {"big-0": batches})
    window = [
        ColumnFilter("timestamp", ">=", _EPOCH + timedelta(seconds=50)),
        ColumnFilter("timestamp", "<", _EPOCH + timedelta(seconds=70)),
    ]
    counters, found = ScanCounters(), 0
    for unit in KafkaTables().units({"repo": backed.place.store.url, "subscribe": "big"}, window):
        for each in unit.ranges:
            found += sum(batch.num_rows for batch in read_range(each, counters))
    assert 20 <= found <= 21
    assert counters.batches <= 1.2 * 20
    assert counters.stored_bytes <= 1.2 * 20 * 31_000 + (64 << 10), "and the index"


def test_the_catalogue_describes_the_backup(backed: Backed) -> None:
    view = open_view(parse_options({"repo": backed.place.store.url}))
    made = {name: make(view).to_pylist() for name, make in CATALOGUE.items()}
    assert {row["topic"]: row["partitions"] for row in made["logkeep_topics"]} == {
        "orders": 2,
        "my-topic.x": 1,
        "Upper": 1,
        "UPPER": 1,
    }
    orders = [row for row in made["logkeep_partitions"] if row["topic"] == "orders"]
    assert [row["partition"] for row in orders] == [0, 1]
    assert all(row["records"] >= BATCHES * IN_A_BATCH and row["missing_offsets"] == 0 for row in orders)
    assert made["logkeep_groups"] == []
    assert {row["topic"] for row in made["logkeep_segments"]} == {"orders", "my-topic.x", "Upper", "UPPER"}
    for row in made["logkeep_segments"]:
        assert backed.place.store.head(row["object"]).size == row["stored_bytes"]


def test_keys_and_values_are_decoded_with_the_archived_schemas(tmp_path: Path) -> None:
    """By the schema of a framed value; plain JSON as it is; anything else is null."""
    key = b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}'
    fields = '[{"name":"n","type":"long"}]'
    schema = json.dumps({"type": "record", "name": "r", "fields": json.loads(fields)})
    stored = json.dumps({"subject": "s", "version": 1, "id": 7, "schema": schema, "deleted": False}).encode()
    framed, unknown = b"\0" + (7).to_bytes(4, "big") + b"\x0a", b"\0" + (8).to_bytes(4, "big") + b"\x0a"
    guid = (b"__value_schema_id", b"\x01" + bytes(16))
    values = [
        Slow(0, 0, b'"k"', framed),
        Slow(1, 0, b"text", b'{"a": [1, "\xc3\xa9"]}'),
        Slow(2, 0, None, None),
        Slow(3, 0, framed, unknown),
        Slow(4, 0, b"7", b"\x0a", (guid,)),
    ]
    logs = {"_schemas-0": [batch_of(0, [Slow(0, 0, key, stored)], None)], "t-0": [batch_of(0, values, None)]}
    backed = backed_up(tmp_path, logs)
    found = _read(backed, subscribe="t", columns="key_json,value_json", includeHeaders="")
    assert found == [
        ('"k"', '{"n": 5}'),
        (None, '{"a": [1, "\\u00e9"]}'),
        (None, None),
        ('{"n": 5}', None),
        ("7", None),
    ]


def test_offsets_that_were_lost_are_refused_unless_that_is_wanted(tmp_path: Path) -> None:
    place = source_with_a_gap(tmp_path / "repo").place
    first, last = (entry.id for entry in read_chain(place).completed)
    backed = Backed(place, last)
    with pytest.raises(DataGap, match="offsets 2 to 6 were lost before they could be archived: retention") as error:
        _read(backed, subscribe="state")
    assert "failOnDataLoss" in error.value.remedy
    with pytest.raises(DataGap):
        _read(backed, ColumnFilter("partition", "=", 1), subscribe="state", pushdown="true")

    def offsets(*filters: ColumnFilter, **options: str) -> list[tuple[int, int]]:
        return [(row[3], row[4]) for row in _read(backed, *filters, **{"subscribe": "state", **options})]

    own = [(1, 0), (1, 1), (1, 7), (1, 8)]
    assert offsets(failOnDataLoss="false") == [(0, 0), (0, 1), *own]
    assert offsets(assign='{"state": [0]}', subscribe="") == offsets(versionAsOf=str(first))[:2] == [(0, 0), (0, 1)]
    assert offsets(ColumnFilter("offset", ">=", 7), pushdown="true") == own[2:]
