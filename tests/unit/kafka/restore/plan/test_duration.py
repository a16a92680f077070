"""What keeping offsets costs, and what `auto` makes of it."""

import msgspec
import pytest

from logkeep.kafka.restore.facts.survey_task import LogSurvey
from logkeep.kafka.restore.facts.units import Offsets
from logkeep.kafka.restore.plan.duration import (
    LONGEST_EXTRA_S,
    choose_offsets,
    duration_text,
    preserve_s,
    restore_s,
    together_s,
)
from tests.support.kafka.stored_segments import LOG


def _log(start: int = 0, holes: int = 0, missing: int = 0, size: int = 0, again: int = 0) -> LogSurvey:
    return LogSurvey(
        log=LOG, start=start, end=start + 100, holes=holes, missing=missing, bytes=size, reencoded_bytes=again
    )


def test_a_log_without_holes_costs_nothing_more() -> None:
    chosen = choose_offsets([_log(), _log()], new_topics=True, at_once=1)
    assert (chosen.offsets, chosen.extra_s) == (Offsets.PRESERVE, 0.0)
    assert chosen.reason == "records keep their offsets: the topics are new, and there are no holes to fill"


def test_each_hole_costs_a_transaction_and_a_wide_one_its_fillers() -> None:
    assert preserve_s(_log(holes=59, missing=59)) == pytest.approx(1.0)
    assert preserve_s(_log(holes=59, missing=118)) == pytest.approx(1.0 + 59 / 353, rel=1e-4)
    assert preserve_s(_log(start=400_000_000)) == pytest.approx(100.0)


def test_too_many_holes_are_told_with_their_number() -> None:
    logs = [_log(holes=100_000, missing=100_000)]
    chosen = choose_offsets(logs, new_topics=True, at_once=4)
    assert chosen.offsets is Offsets.TRANSLATE
    assert chosen.extra_s > LONGEST_EXTRA_S
    assert chosen.reason == (
        "records get new offsets: filling up to 100,000 holes takes about 28 min, more than 10 min; "
        "to keep them, restore as files with --to-log-dirs, where holes cost nothing"
    )


def test_what_is_left_out_record_by_record_is_told_as_the_reason() -> None:
    """Files cannot leave records out, so that way is not named."""
    holed = msgspec.structs.replace(_log(holes=500_000, missing=500_000), left_out=500_000)
    chosen = choose_offsets([holed], new_topics=True, at_once=1)
    assert chosen.offsets is Offsets.TRANSLATE
    assert chosen.reason == (
        "records get new offsets: filling up to 500,000 holes takes up to 2 h 21 min (each run of records that "
        "--by-record leaves out is a hole), more than 10 min; --offsets preserve keeps them nevertheless; without "
        "--by-record there are fewer holes"
    )
    few = choose_offsets(
        [msgspec.structs.replace(_log(holes=500, missing=500), left_out=500)], new_topics=True, at_once=1
    )
    assert few.offsets is Offsets.PRESERVE
    assert "takes up to 8 s (each run of records that --by-record leaves out is a hole)" in few.reason


def test_topics_that_exist_and_are_empty_are_not_called_new() -> None:
    chosen = choose_offsets([_log()], new_topics=True, at_once=1, empty=True)
    assert chosen.reason == "records keep their offsets: the topics are new or empty, and there are no holes to fill"


def test_partitions_are_filled_at_once() -> None:
    logs = [_log(start=1_000_000, holes=30_000, missing=30_000)] * 4
    assert choose_offsets(logs, new_topics=True, at_once=1).offsets is Offsets.TRANSLATE
    chosen = choose_offsets(logs, new_topics=True, at_once=4)
    assert chosen.offsets is Offsets.PRESERVE
    assert "up to 120,000 holes and 4,000,000 offsets before the first ones takes about 8 min" in chosen.reason


def test_topics_that_exist_are_appended_to() -> None:
    chosen = choose_offsets([_log()], new_topics=False, at_once=1)
    assert chosen.offsets is Offsets.TRANSLATE
    assert "exists already" in chosen.reason


def test_the_whole_restore_counts_bytes_proof_and_holes() -> None:
    logs = [_log(size=200_000_000)]
    sent = restore_s(logs, Offsets.TRANSLATE, proof=False, at_once=1)
    assert sent == pytest.approx(1.0)
    assert restore_s(logs, Offsets.TRANSLATE, proof=True, at_once=1) > sent
    holed = [_log(size=200_000_000, holes=590, missing=590)]
    assert restore_s(holed, Offsets.PRESERVE, proof=False, at_once=1) == pytest.approx(11.0)
    assert restore_s([_log(size=60_000_000, again=60_000_000)], Offsets.TRANSLATE, proof=False, at_once=9) == 1.0


def test_the_longest_log_is_waited_for() -> None:
    assert together_s([10.0, 1.0, 1.0], 4) == 10.0
    assert together_s([3.0, 3.0, 3.0], 2) == 4.5
    assert together_s([], 2) == 0.0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "1 s"), (89.0, "89 s"), (600.0, "10 min"), (7200.0, "2 h 0 min"), (9_000.0, "2 h 30 min")],
)
def test_a_time_is_said_for_people(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text
