"""Which engine `--engine auto` takes, from units, cores, bytes and measured speeds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkeep.engine.choice import Circumstances, WorkSize, estimate
from logkeep.engine.speeds import USUAL_RATE, EngineSpeeds

GB = 10**9
MEASURED = EngineSpeeds("here", start_s=6.0, stop_s=1.0, inline={"file copy": 300e6}, spark={"file copy": 250e6})
TWO_CORES = Circumstances(workers=2)


def _takes_spark(
    total_bytes: int, units: int = 8, around: Circumstances = TWO_CORES, speeds: EngineSpeeds = MEASURED
) -> bool:
    return estimate(WorkSize("file copy", units, total_bytes, total_bytes // units), speeds, around).takes_spark


@pytest.mark.parametrize("size_bytes", (0, 116 << 20, 1_100_000_000))
def test_work_that_is_done_before_spark_has_started_stays_here(size_bytes: int) -> None:
    """116 MiB: 0.4 s here. With the old rule Spark was taken above 64 MiB."""
    assert not _takes_spark(size_bytes)
    assert not _takes_spark(size_bytes, speeds=EngineSpeeds()), "nothing was measured yet"


def test_large_work_is_faster_on_spark() -> None:
    assert _takes_spark(20 * GB)
    assert _takes_spark(20 * GB, speeds=EngineSpeeds())
    found = estimate(WorkSize("file copy", 10, 3 * GB, 300_000_000), MEASURED, TWO_CORES)
    assert found.inline_s == pytest.approx(10.0)
    # 1.8 GB are done here while Spark starts, 1.2 GB by its two workers.
    assert found.spark_s == pytest.approx(6.0 + 2.4 + 0.1 + 1.0)


@given(st.integers(0, 10**15), st.integers(0, 64), st.booleans())
def test_one_unit_or_one_worker_never_starts_spark(size_bytes: int, workers: int, started: bool) -> None:
    assert not _takes_spark(size_bytes, 1, Circumstances(workers, started=started))
    assert not _takes_spark(size_bytes, 8, Circumstances(1, started=started))


def test_more_workers_make_spark_worth_its_start_earlier() -> None:
    assert not _takes_spark(2_500_000_000, around=Circumstances(2))
    assert _takes_spark(2_500_000_000, around=Circumstances(8))


def test_a_unit_is_never_begun_twice_so_the_largest_bounds_the_time() -> None:
    work = WorkSize("file copy", 3, 12 * GB, 6 * GB)
    found = estimate(work, MEASURED, Circumstances(8))
    assert found.spark_s == pytest.approx(20.0 + 1.0)


def test_one_huge_unit_among_small_ones_is_not_divided() -> None:
    """Spark could only run the small rest beside it."""
    sizes = [20 * GB, *[1000] * 7]
    work = WorkSize("file copy", 8, sum(sizes), max(sizes))
    assert not estimate(work, MEASURED, TWO_CORES).takes_spark


def test_a_running_spark_takes_work_that_a_start_would_not_be_worth() -> None:
    assert _takes_spark(GB, around=Circumstances(2, started=True))
    assert not _takes_spark(1 << 20, around=Circumstances(2, started=True)), "units have a cost there too"


def test_without_a_class_archive_spark_has_to_earn_more() -> None:
    assert _takes_spark(10 * GB)
    assert not _takes_spark(10 * GB, around=Circumstances(2, archive=False))
    assert _takes_spark(100 * GB, around=Circumstances(2, archive=False))


def test_a_limit_that_this_process_reaches_alone_needs_no_spark() -> None:
    assert not _takes_spark(100 * GB, around=Circumstances(8, bytes_per_s=100_000_000))
    assert _takes_spark(100 * GB, around=Circumstances(8, bytes_per_s=1_000_000_000))


@given(
    st.integers(2, 64),
    st.integers(2, 100),
    st.integers(0, 10**13),
    st.floats(1e6, 1e9),
    st.floats(1e6, 1e9),
    st.floats(0.1, 60),
)
def test_the_shorter_time_wins_and_more_bytes_never_take_less(
    workers: int, units: int, size_bytes: int, here: float, there: float, start_s: float
) -> None:
    speeds = EngineSpeeds("", start_s, 1.0, {"file copy": here}, {"file copy": there})
    found = estimate(WorkSize("file copy", units, size_bytes, size_bytes // units), speeds, Circumstances(workers))
    more = estimate(
        WorkSize("file copy", units, size_bytes * 2, size_bytes * 2 // units), speeds, Circumstances(workers)
    )
    assert found.takes_spark == (found.spark_s < found.inline_s)
    assert found.spark_s >= start_s
    assert (more.inline_s, more.spark_s) >= (found.inline_s, found.spark_s)


def test_a_low_rate_counts_only_if_it_was_measured_over_many_bytes() -> None:
    """Most of the time of a small job goes into connections and imports, not into bytes."""
    start = EngineSpeeds()
    assert start.with_inline("k", 1 << 20, 1.0) == start
    assert start.with_inline("k", 256 << 20, 4.0).inline_rate("k") == 64 << 20
    assert start.with_inline("k", 1 << 20, 0.001).inline_rate("k") == (1 << 20) / 0.001
    assert start.with_inline("k", 256 << 20, 4.0, alone=False) == start, "Spark was starting beside it"
    assert start.with_inline("k", 0, 1.0) == start.with_inline("k", 1 << 30, 0.0) == start


def test_rates_are_means_and_those_of_one_worker() -> None:
    speeds = EngineSpeeds().with_spark("k", 800 << 20, 2.0, 4)
    assert speeds.spark_rate("k") == 100 << 20
    assert speeds.inline_rate("k") == 100 << 20, "alone it is no slower"
    assert speeds.with_spark("k", 1600 << 20, 2.0, 4).spark_rate("k") == 150 << 20
    assert speeds.spark_rate("other") == USUAL_RATE


def test_a_start_that_was_aborted_is_a_lower_bound() -> None:
    speeds = EngineSpeeds(start_s=8.0)
    assert speeds.with_start(4.0).start_s == 6.0
    assert speeds.with_start(4.0, ended=False).start_s == 8.0
    assert speeds.with_start(20.0, ended=False).start_s == 20.0
    assert speeds.with_start(1e9).start_s == 600.0


def test_the_number_of_kinds_is_limited() -> None:
    speeds = EngineSpeeds()
    for number in range(300):
        speeds = speeds.with_inline(f"kind {number}", 1 << 30, 1.0)
    assert len(speeds.inline) == 200
    assert speeds.inline_rate("kind 299") == 1 << 30
