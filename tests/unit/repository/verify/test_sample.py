"""A sample of the objects for every day."""

from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from logkeep.repository.verify.checks import VerifySample


@given(st.integers(1, 6), st.integers(1, 30), st.dates(date(2026, 1, 1), date(2027, 1, 1)))
def test_a_sample_of_every_day_is_everything_in_time(part: int, of: int, day: date) -> None:
    sample = VerifySample(min(part, of), of)
    days = [day + timedelta(days=n) for n in range(-(-sample.of // sample.part))]
    assert all(any(sample.takes(f"{t:016x}", d) for d in days) for t in range(60))
