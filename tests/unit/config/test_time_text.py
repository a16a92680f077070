"""Times as people write them: with an offset, a zone or none, before now; and what was assumed."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkeep.config.load import load
from logkeep.config.option_types import Timestamp
from logkeep.config.options import UNTIL_TIME
from logkeep.config.places import NOWHERE
from logkeep.config.time_text import UnclearTime, assumption, read_time
from tests.support.cli.processes import logkeep

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)


def moment(text: str) -> str:
    return datetime.fromtimestamp(read_time(text, NOW) / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


@pytest.mark.parametrize(
    ("text", "expected", "assumed"),
    [
        ("2026-11-17T08:20:00Z", "2026-11-17 08:20:00", ""),
        ("2026-11-17 09:20 +01:00", "2026-11-17 08:20:00", ""),
        ("2026-11-17 08:20 Z", "2026-11-17 08:20:00", ""),
        ("2026-11-17 09:20 Europe/Zurich", "2026-11-17 08:20:00", "Europe/Zurich"),
        ("2026-07-17 09:20  Europe/Zurich", "2026-07-17 07:20:00", "Europe/Zurich"),
        ("2026-11-17 09:20 UTC", "2026-11-17 09:20:00", "UTC"),
        ("2026-11-17 09:20", "2026-11-17 09:20:00", "UTC, as no time zone is given"),
        ("-10m", "2026-11-17 11:50:00", "before now"),
        ("-1d2h30m", "2026-11-16 09:30:00", "before now"),
        ("1794903600000", "2026-11-17 08:20:00", ""),
    ],
)
def test_a_time_and_what_was_assumed(text: str, expected: str, assumed: str) -> None:
    assert (moment(text), assumption(text)) == (expected, assumed)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("2026-10-25 02:30 Europe/Zurich", "is shown twice by clocks in Europe/Zurich"),
        ("2026-03-29 02:30 Europe/Zurich", "is shown never by clocks in Europe/Zurich"),
        ("2026-11-17 09:20 Europe/Zurch", "which this machine does not know"),
        ("2026-11-17 09:20+01:00 Europe/Zurich", "has an offset and the zone"),
    ],
)
def test_an_unclear_time_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(UnclearTime, match=why):
        Timestamp().parse(text)


@pytest.mark.parametrize(
    "text",
    (
        "-60y",
        "-",
        "-999999999w",
        "-80w60d999999h",
        "10m",
        "2026-11-17 25:00",
        "now",
        "9999-12-31 23:00 America/New_York",
    ),
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be a time such as"):
        Timestamp(clock=lambda: datetime(1971, 1, 1, tzinfo=UTC)).parse(text)


@given(st.text(max_size=40))
def test_no_text_crashes(text: str) -> None:
    try:
        read_time(text, NOW)
    except ValueError:
        return
    assumption(text)


def test_a_relative_time_is_resolved_once_and_kept_as_an_absolute_one() -> None:
    before = datetime.now(UTC)
    settings = load({"--until-time": "-10m"}, {}, NOWHERE).settings
    value = settings[UNTIL_TIME]
    assert value is not None
    assert abs(datetime.fromtimestamp(value / 1000, UTC) - (before - timedelta(minutes=10))) < timedelta(minutes=1)
    assert UNTIL_TIME.kind.show(value) == str(value), "what plans and receipts store"
    assert settings[UNTIL_TIME] == value


def test_the_assumed_zone_is_printed(tmp_path: Path) -> None:
    words = ("kafka", "restore", "latest", "-r", f"file://{tmp_path}/none", "--until-time", "2026-11-17 09:20")
    told = "--until-time 2026-11-17 09:20 is 2026-11-17T09:20:00.000Z (UTC, as no time zone is given)"
    assert told in logkeep(*words, home=tmp_path).stderr.splitlines()
    assert told not in logkeep(*words, "--quiet", home=tmp_path).stderr
    assert told not in logkeep(*words, "--json", home=tmp_path).stderr
