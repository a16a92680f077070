"""The options of the format `logkeep`: those of Spark's Kafka source mean the same, others are refused by name."""

from datetime import UTC, datetime

import pytest

from logkeep.errors import UsageError
from logkeep.kafka.tables.format import KafkaTables
from logkeep.kafka.tables.options import EARLIEST, LATEST, RangeEnd, TableOptions, parse_options

REPO = {"repo": "s3://bucket/prefix"}


def test_a_job_changes_its_format_and_adds_the_repository() -> None:
    job = {
        "kafka.bootstrap.servers": "broker:9092",
        "kafka.sasl.jaas.config": "… password='hidden'",
        "subscribe": "orders, payments",
        "startingOffsets": '{"orders": {"0": 23, "1": -2}}',
        "endingOffsets": "latest",
        "minPartitions": "8",
        "includeHeaders": "true",
        "failOnDataLoss": "false",
        "fetchOffset.numRetries": "5",
        "kafkaConsumer.pollTimeoutMs": "1000",
    }
    found = parse_options({**job, "repo": "s3://bucket/prefix", "source": "prod"})
    assert found == TableOptions(
        repo="s3://bucket/prefix",
        source="prod",
        topics=("orders", "payments"),
        start=RangeEnd(EARLIEST, {"orders": {0: 23, 1: -2}}),
        min_partitions=8,
        fail_on_data_loss=False,
        columns=("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers"),
    )
    kept = KafkaTables().kept_options(REPO | job | {"Kafka.Isolation.Level": "read_uncommitted"})
    assert kept["pushdown"] == "false"
    assert not any("hidden" in value or "broker" in value for value in kept.values()), "passed on to every task"
    assert kept["kafka.isolation.level"] == "read_uncommitted"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {"backup": "latest", "start": RangeEnd(EARLIEST), "end": RangeEnd(LATEST)}),
        ({"versionAsOf": "2026"}, {"backup": "2026"}),
        ({"TIMESTAMPASOF": "2026-11-14T02:00:00+02:00"}, {"finished_by": datetime(2026, 11, 14, tzinfo=UTC)}),
        ({"timestampAsOf": "2026-11-14 02:00:00"}, {"finished_by": datetime(2026, 11, 14, 2, tzinfo=UTC)}),
        ({"startingTimestamp": "17"}, {"start": RangeEnd(17, is_time=True)}),
        (
            {"startingTimestamp": "17", "startingOffsets": '{"t": {"0": 3}}'},
            {"start": RangeEnd(17, is_time=True)},
        ),
        (
            {"endingOffsetsByTimestamp": '{"t": {"0": 3}}', "endingOffsets": "latest"},
            {"end": RangeEnd(LATEST, {"t": {0: 3}}, is_time=True)},
        ),
        ({"startingOffsetsByTimestampStrategy": "latest"}, {"late_start_is_end": True}),
        ({"assign": '{"t": [0, 2]}'}, {"assigned": {"t": frozenset({0, 2})}}),
        ({"subscribePattern": "a.*"}, {"pattern": "a.*"}),
        ({"isolation": "all"}, {"isolation": "all"}),
        ({"kafka.isolation.level": "read_uncommitted"}, {"isolation": "all"}),
        ({"kafka.isolation.level": "read_uncommitted", "isolation": "committed"}, {"isolation": "committed"}),
        ({"PushDown": "TRUE"}, {"pushdown": True}),
        ({"decode": "true"}, {"decoded": True, "columns": (*TableOptions.columns, "key_json", "value_json")}),
        ({"columns": "offset,Value_JSON"}, {"decoded": True, "columns": ("offset", "value_json")}),
        ({"columns": "offset"}, {"decoded": False}),
        ({"columns": "Offset,timestamptype"}, {"columns": ("offset", "timestampType")}),
    ],
)
def test_each_option_has_its_meaning(given: dict[str, str], expected: dict[str, object]) -> None:
    found = parse_options(REPO | given)
    assert {name: getattr(found, name) for name in expected} == expected


def test_the_path_of_load_is_the_repository() -> None:
    assert parse_options({"path": "s3://bucket/prefix"}).repo == "s3://bucket/prefix"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"startingOffset": "earliest"}, "did you mean startingOffsets"),
        ({"aws_secret_access_key": "x"}, "into the environment"),
        ({"sasl.password": "x"}, "into the environment"),
        ({"subscribe": "a", "assign": '{"a": [0]}'}, "leave one out"),
        ({"subscribe": " , "}, "commas"),
        ({"startingOffsets": "latest"}, "use earliest"),
        ({"endingOffsets": "earliest"}, "use latest"),
        ({"startingOffsets": '{"t": {"0": -1}}'}, "-2: earliest"),
        ({"endingOffsets": '{"t": {"0": -2}}'}, "-1: latest"),
        ({"startingOffsets": '{"t": {"0": -3}}'}, "-2: earliest"),
        ({"startingOffsets": "{"}, "is JSON"),
        ({"startingOffsets": '{"t": [0]}'}, "is JSON"),
        ({"startingOffsets": "[" * 100_000}, "is JSON"),
        ({"minPartitions": "1" * 5_000}, "at least 1"),
        ({"timestampAsOf": "0001-01-01T00:00:00+14:00"}, "without a zone it is UTC"),
        ({"endingOffsets": '{"t": {"x": 1}}'}, "is JSON"),
        ({"startingTimestamp": "yesterday"}, "whole number"),
        ({"startingTimestamp": "9" * 30}, "whole number"),
        ({"assign": '{"t": 0}'}, '{"topic": [0, 1]}'),
        ({"assign": "{}"}, '{"topic": [0, 1]}'),
        ({"minPartitions": "0"}, "at least 1"),
        ({"isolation": "read_committed"}, "committed or all"),
        ({"kafka.isolation.level": "none"}, "read_committed or read_uncommitted"),
        ({"includeHeaders": "yes"}, "false or true"),
        ({"columns": "offset,color"}, "the columns are"),
        ({"columns": "offset", "includeHeaders": "true"}, "add headers to columns"),
        ({"versionAsOf": "1", "timestampAsOf": "2026-11-14"}, "leave one out"),
        ({"timestampAsOf": "noon"}, "without a zone it is UTC"),
        ({"path": "/elsewhere"}, "leave one out"),
    ],
)
def test_a_wrong_option_is_refused_with_what_to_write(given: dict[str, str], says: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_options(REPO | given)
    assert says in refused.value.remedy
    assert "x" not in refused.value.what.split(), "no value of a credential is repeated"


def test_without_a_repository_nothing_is_read() -> None:
    with pytest.raises(UsageError, match="no repository is named"):
        parse_options({"subscribe": "a"})
