"""Text and YAML become typed values, or a sentence that says what was expected."""

from datetime import timedelta
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkeep.config.option_types import (
    Bool,
    Duration,
    FilePath,
    Int,
    OneOf,
    OptionType,
    Ratio,
    Size,
    SourceName,
    SparkConf,
    Text,
    TextList,
    Timestamp,
)

MIB = 1024 * 1024


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    (
        (Text(), "x y", "x y"),
        (Int(), "7", 7),
        (Bool(), "Yes", True),
        (Bool(), "off", False),
        (Size(), "16MiB", 16 * MIB),
        (Size(), "16M", 16 * MIB),
        (Size(), "16777216", 16 * MIB),
        (Size(), "1.5k", 1536),
        (Size(), "2 GB", 2 * 1024 * MIB),
        (Size(), "12B", 12),
        (Duration(), "10s", timedelta(seconds=10)),
        (Duration(), "7d", timedelta(days=7)),
        (Duration(), "1h30m", timedelta(minutes=90)),
        (Duration(), "250ms", timedelta(milliseconds=250)),
        (Ratio(), "1/7", Fraction(1, 7)),
        (Ratio(), "2.5%", Fraction(1, 40)),
        (Ratio(), "1", Fraction(1)),
        (OneOf(("a", "b")), "b", "b"),
        (FilePath(), "/x/y", Path("/x/y")),
        (SourceName(), "prod-eu.1", "prod-eu.1"),
        (TextList(), "a, b,,c", ("a", "b", "c")),
        (SparkConf(), "spark.a=1 'spark.b=x y'", (("spark.a", "1"), ("spark.b", "x y"))),
    ),
)
def test_reads_text(kind: OptionType[object], text: str, value: object) -> None:
    assert kind.parse(text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    (
        (Text(), ""),
        (Int(), "x"),
        (Int(), "-1"),
        (Int(1), "0"),
        (Int(), "1.0"),
        (Int(), "٣"),
        (Int(), "9" * 30),
        (Bool(), "maybe"),
        (Size(), "0"),
        (Size(), "-1M"),
        (Size(), "1.3"),
        (Size(), "16MiBs"),
        (Size(), "9999999P"),
        (Duration(), "10"),
        (Duration(), "1y"),
        (Duration(), "-5m"),
        (Duration(), "9" * 39 + "d"),
        (Ratio(), "0"),
        (Ratio(), "101%"),
        (Ratio(), "1/0"),
        (Ratio(), "x"),
        (OneOf(("a", "b")), "c"),
        (FilePath(), ""),
        (FilePath(), "a\0b"),
        (FilePath(), "~nobody-of-this-name/x"),
        (SourceName(), "../x"),
        (SparkConf(), "spark.a"),
        (SparkConf(), "memory=1"),
        (SparkConf(), "spark.hadoop.fs.s3a.secret.key=abc"),
        (SparkConf(), "spark.authenticate.secret=abc"),
        (SparkConf(), "spark.authenticate.secret.file=/f"),
        (SparkConf(), "spark.driver.extraJavaOptions=-Dspark.authenticate.secret=abc"),
        (SparkConf(), "spark.executorEnv._SPARK_AUTH_SECRET=abc"),
        (SparkConf(), "'open"),
    ),
)
def test_refuses_text(kind: OptionType[object], text: str) -> None:
    with pytest.raises(ValueError, match=r"must|is wrong|has|closing"):
        kind.parse(text)


@pytest.mark.parametrize(
    ("kind", "raw"),
    (
        (Text(), 5),
        (Text(), True),
        (Text(), None),
        (Int(), "5"),
        (Int(), True),
        (Int(), 1.5),
        (Bool(), "true"),
        (Bool(), 1),
        (Size(), True),
        (Size(), [1]),
        (Duration(), 10),
        (Ratio(), True),
        (TextList(), {"a": 1}),
        (TextList(), [1]),
        (SparkConf(), ["spark.a=1"]),
    ),
)
def test_refuses_other_yaml_types(kind: OptionType[object], raw: object) -> None:
    with pytest.raises(ValueError, match="must be"):
        kind.from_yaml(raw)


def test_yaml_words_that_became_something_else_get_a_hint() -> None:
    with pytest.raises(ValueError, match="not false; put it in quotes"):
        Text().from_yaml(False)


@given(st.integers(min_value=1, max_value=2**62))
def test_shown_sizes_read_back(size: int) -> None:
    assert Size().parse(Size().show(size)) == size


@given(st.integers(min_value=0, max_value=10**12))
def test_shown_durations_read_back(milliseconds: int) -> None:
    value = timedelta(milliseconds=milliseconds)
    assert Duration().parse(Duration().show(value)) == value


@given(st.text(max_size=40))
def test_no_text_crashes_a_kind(text: str) -> None:
    for kind in (Int(), Size(), Duration(), Ratio(), SparkConf(), SourceName(), FilePath()):
        try:
            kind.parse(text)
        except ValueError:
            continue


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:01Z", 1000),
        ("1970-01-01T00:00:01", 1000),
        ("1970-01-01 01:00:01.5+01:00", 1500),
        ("2026-11-14", 1794614400000),
        ("1763085600123", 1763085600123),
    ],
)
def test_a_moment_is_milliseconds(text: str, expected: int) -> None:
    assert Timestamp().parse(text) == expected
    assert Timestamp().parse(Timestamp().show(Timestamp().parse("1763085600123"))) == 1763085600123


@pytest.mark.parametrize(
    "text",
    ["", "yesterday", "2026-13-01", "1969-12-31T23:59:59Z", "123", "17630856001234567", "9999999999999999"],
)
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be a time such as"):
        Timestamp().parse(text)
