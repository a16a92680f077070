"""A wrong name of a table is answered with the nearest ones, as they are written in a query."""

import pytest

from logkeep.engine.spark.sql.table_names import TableMissing, missing_table, unknown_table
from logkeep.errors import UsageError

TABLES = ("orders", "my-topic.x", "my-topic.y", "payments", "then.orders", "records", "logkeep_topics", "A", "a")


@pytest.mark.parametrize(
    ("relation", "parts"),
    [("`orders`", ("orders",)), ("`a`.`b`", ("a", "b")), ("`my-topic.x`", ("my-topic.x",)), ("`a``b`", ("a`b",))],
)
def test_sparks_error_names_the_table(relation: str, parts: tuple[str, ...]) -> None:
    missing = missing_table("TABLE_OR_VIEW_NOT_FOUND", {"relationName": relation}, "")
    assert missing == TableMissing(parts)


def test_a_name_of_three_parts_is_missing_too() -> None:
    given = {"sessionCatalog": "spark_catalog", "identifier": "`my`.`topic`.`x`"}
    assert missing_table("REQUIRES_SINGLE_PART_NAMESPACE", given, "") == TableMissing(("my", "topic", "x"))


def test_a_name_before_a_dot_is_a_data_source_to_spark() -> None:
    text = "[KAFKA_DATA_SOURCE_NOT_ENABLED] Failed to find data source: kafka. Please deploy the application"
    assert missing_table("KAFKA_DATA_SOURCE_NOT_ENABLED", {"provider": "kafka"}, text) == TableMissing(("kafka", ""))


def test_other_errors_name_no_table() -> None:
    assert missing_table("UNRESOLVED_COLUMN.WITH_SUGGESTION", {"objectName": "`x`"}, "") is None
    assert missing_table("", {}, "no message") is None


def test_case_is_ignored_as_spark_does() -> None:
    assert TableMissing(("ORDERS",)).among(TABLES) == "orders"
    assert TableMissing(("nothing",)).among(TABLES) is None
    assert TableMissing(("my-topic", "x")).among(TABLES) is None
    with pytest.raises(UsageError, match="several topics are called A and a") as refused:
        TableMissing(("a",)).among(TABLES)
    assert "records WHERE topic" in refused.value.remedy


@pytest.mark.parametrize(
    ("parts", "remedy"),
    [
        (("order",), "the nearest are: `orders`"),
        (("ODERS",), "the nearest are: `orders`"),
        (("my-topic", "x"), "write `my-topic.x`"),
        (("my-topic", ""), "write `my-topic.x`, `my-topic.y`"),
        (("then", "orders"), "write `then.orders`"),
        (("kafka", "payments"), "the nearest are: `payments`"),
        (("zzzzzzzz",), "there are: "),
    ],
)
def test_the_nearest_names_are_listed(parts: tuple[str, ...], remedy: str) -> None:
    error = unknown_table(TableMissing(parts), TABLES)
    assert remedy in error.remedy
    assert "`logkeep_topics` lists the topics" in error.remedy or "needs backticks" in error.what
