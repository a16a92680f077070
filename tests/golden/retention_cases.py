"""One fixed history of a source and the policies whose verdicts are kept as golden files.

The history has everything that makes retention hard: three backups in one hour, a month without any, days around a
change of year and of ISO week, a clock that ran backwards once, damaged, unfinished, held and tagged backups, and one
dated in the future.
"""

from datetime import UTC, datetime, timedelta, timezone

from logkeep.repository.upkeep.retention import Candidate, Policy

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)

_DAMAGED = {3, 30, 55, 60}
_UNFINISHED = {12, 58}
_HELD = {2: "audit", 20: "", 30: "evidence"}
_TAGGED = {5: ("release", "v1"), 28: ("release",), 55: ("release",)}


def _moments() -> list[datetime]:
    yearly = [datetime(year, 12, 31, 23, 30, tzinfo=UTC) for year in (2022, 2023, 2024)]
    turn_of_year = [datetime(2025, 12, 28, 3, tzinfo=UTC) + timedelta(days=n) for n in range(8)]
    monthly = [datetime(2026, month, 15, 2, tzinfo=UTC) for month in (2, 3, 4, 6, 7, 8)]
    daily = [datetime(2026, 10, 1, 2, 15, tzinfo=UTC) + timedelta(days=n) for n in range(30)]
    # Written with another zone's clock: 00:30 in the east is still the day before in UTC.
    eastern = [datetime(2026, 11, day, 0, 30, tzinfo=timezone(timedelta(hours=9))) for day in (3, 9)]
    today = [datetime(2026, 11, 15, hour, minute, tzinfo=UTC) for hour in (8, 9, 10) for minute in (0, 20, 59)]
    clock_ran_back = [datetime(2026, 11, 14, 22, tzinfo=UTC)]
    future = [datetime(2026, 11, 15, 12, 0, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)]
    return yearly + turn_of_year + monthly + daily + eastern + today + clock_ran_back + future


def history() -> list[Candidate]:
    """61 backups, oldest first, with ids 1 to 61."""
    return [
        Candidate(
            id=number,
            committed=moment,
            good=number not in _DAMAGED | _UNFINISHED,
            damaged=number in _DAMAGED,
            held=number in _HELD,
            hold_reason=_HELD.get(number, ""),
            tags=_TAGGED.get(number, ()),
            generation=number,
        )
        for number, moment in enumerate(_moments(), start=1)
    ]


POLICIES: dict[str, Policy] = {
    "empty": Policy(),
    "zeros-are-no-rules": Policy(keep_last=0, keep_daily=0, keep_within=timedelta(0), keep_days=0, keep_count=0),
    "floor-alone-is-no-rule": Policy(keep_min_count=2, delete_damaged=True),
    "last-5": Policy(keep_last=5),
    "hourly-4": Policy(keep_hourly=4),
    "daily-7": Policy(keep_daily=7),
    "weekly-8": Policy(keep_weekly=8),
    "monthly-6": Policy(keep_monthly=6),
    "yearly-10": Policy(keep_yearly=10),
    "grandfather-father-son": Policy(keep_last=3, keep_daily=7, keep_weekly=5, keep_monthly=12, keep_yearly=5),
    "within-14-days": Policy(keep_within=timedelta(days=14)),
    "within-90-minutes": Policy(keep_within=timedelta(minutes=90)),
    "tag-release": Policy(keep_tags=("release",)),
    "tag-of-nobody": Policy(keep_tags=("nobody",)),
    "days-7": Policy(keep_days=7),
    "days-7-floor-20": Policy(keep_days=7, keep_min_count=20),
    "days-7-no-floor": Policy(keep_days=7, keep_min_count=0),
    "count-10": Policy(keep_count=10),
    "count-1-floor-default": Policy(keep_count=1),
    "days-30-count-10": Policy(keep_days=30, keep_count=10),
    "daily-30-count-12-tag": Policy(keep_daily=30, keep_count=12, keep_tags=("release",)),
    "last-2-delete-damaged": Policy(keep_last=2, delete_damaged=True),
    "tag-release-delete-damaged": Policy(keep_tags=("release",), delete_damaged=True),
}
