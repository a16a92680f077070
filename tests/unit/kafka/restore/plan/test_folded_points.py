"""Points in time and offsets inside a folded span are refused, with those that are left."""

import msgspec
import pytest

from logkeep.errors import UsageError
from logkeep.kafka.restore.plan.folded_points import folded_since, refuse_lost_points
from logkeep.kafka.restore.plan.values import PlannedLog
from logkeep.model.ranges import Range
from logkeep.model.segments import Collection, LogName, Segment
from logkeep.repository.chain.fold import FoldedCut, FoldedLog

LOG = LogName(Collection.TOPICS, "state", "a" * 32, 0)
FOLD = FoldedLog(
    log=LOG, start=0, end=100, last_id=40, generation=9, committed="2026-11-18T10:00:00+00:00", dense_to=0,
    cuts=(FoldedCut(10, 0, 50), FoldedCut(40, 0, 100)),
)  # fmt: skip


def _row(start: int, end: int, max_time_ms: int) -> Segment:
    return Segment(
        log=LOG, start=start, end=end, first=start, token="0" * 16, records=1, stored_bytes=1, plain_bytes=1,
        base_time_ms=0, max_time_ms=max_time_ms, sha256="0" * 64, plain_sha256="0" * 64,
    )  # fmt: skip


ROWS = [_row(0, 50, 1_000), _row(50, 100, 2_000), _row(100, 150, 3_000)]


def _refuse(end: int, until_ms: int | None = None) -> None:
    refuse_lost_points({LOG: FOLD}, {LOG: 150}, {LOG: Range(0, end)}, {LOG: ROWS}, until_ms)


@pytest.mark.parametrize("end", [0, 50, 100, 120, 150])
def test_kept_cuts_and_what_comes_after_the_span_are_restore_points(end: int) -> None:
    _refuse(end)


@pytest.mark.parametrize("end", [1, 49, 51, 99])
def test_offsets_between_kept_cuts_are_refused_with_those_that_are_left(end: int) -> None:
    with pytest.raises(UsageError, match=rf"up to offset {end}: offsets \[0, 100\) were folded") as refused:
        _refuse(end)
    assert refused.value.exit_code == 40
    assert "backups 10, 40" in refused.value.remedy
    assert "state:0=N with N among 50, 100, or from 100 on" in refused.value.remedy


def test_a_time_is_refused_unless_it_is_after_all_folded_records() -> None:
    _refuse(150, 2_001)
    for until_ms in (0, 1_500, 2_000):
        with pytest.raises(UsageError, match="up to this time"):
            _refuse(150, until_ms)


def test_other_logs_are_not_concerned() -> None:
    refuse_lost_points({LOG: FOLD}, {LOG: 150}, {}, {}, 5)


def _planned(fold: int | msgspec.UnsetType) -> PlannedLog:
    return PlannedLog(
        log=LOG, start=0, end=9, transactional=False, topic="state", partition=0, base=0, records=9, bytes=9, fold=fold
    )  # fmt: skip


def test_a_restore_that_was_planned_before_the_fold_is_known_whatever_the_clocks_say() -> None:
    """The restore began on a machine whose clock was ahead: its time is after that of the fold."""
    assert folded_since({LOG: FOLD}, [_planned(msgspec.UNSET)]) == [LOG]
    assert folded_since({LOG: FOLD}, [_planned(7)]) == [LOG], "and again"
    assert folded_since({LOG: FOLD}, [_planned(9)]) == []
    assert folded_since({}, [_planned(msgspec.UNSET)]) == []
    assert b"fold" not in msgspec.json.encode(_planned(msgspec.UNSET)), "as plans were before"
