"""Which backups a fold honoured, and which restore points are left."""

import pytest

from logkeep.model.segments import Collection, LogName
from logkeep.repository.backups.folds import folded_over, is_restore_point, restore_points, with_dense
from logkeep.repository.backups.manifest import LogCut
from logkeep.repository.chain.actions import ObjectRef
from logkeep.repository.chain.fold import Burial, Folded, FoldedCut, FoldedLog

LOG = LogName(Collection.TOPICS, "state", "a" * 32, 0)
FOLD = FoldedLog(
    log=LOG, start=0, end=100, last_id=40, generation=9, committed="2026-11-18T00:00:00Z", dense_to=0,
    cuts=(FoldedCut(10, 0, 50), FoldedCut(40, 20, 100)),
)  # fmt: skip


def _over(backup: int, start: int, end: int, *burials: int) -> bool:
    buried = tuple(
        Burial(log=LOG, first=first, object=ObjectRef("0" * 16, 1, "0" * 64), offsets=1) for first in burials
    )
    return bool(folded_over(Folded(folds=(FOLD,), buried=buried), backup, [LogCut(LOG, start, end)]))


def test_backups_that_the_fold_honoured_and_later_ones_are_whole() -> None:
    assert not _over(10, 0, 50)
    assert not _over(40, 20, 100)
    assert not _over(41, 0, 70), "taken after the fold"


def test_a_backup_inside_the_span_that_was_not_honoured_is_folded_over() -> None:
    assert _over(20, 0, 70)
    assert _over(20, 0, 130), "a marker beyond its end may have decided what it needs"
    assert not _over(20, 0, 0)


def test_a_cut_like_an_honoured_one_is_whole_unless_other_offsets_are_buried() -> None:
    assert not _over(20, 0, 50)
    assert _over(20, 0, 50, 15)
    assert not _over(20, 0, 50, 5, 30)
    assert _over(30, 10, 100), "the honoured one starts later"


@pytest.mark.parametrize(("end", "is_one"), [(0, True), (1, False), (50, True), (99, False), (100, True), (120, True)])
def test_restore_points(end: int, is_one: bool) -> None:
    assert is_restore_point(FOLD, end) is is_one
    assert restore_points(FOLD, 60) == (50,)
    assert restore_points(FOLD, 100) == (50, 100)


def test_a_log_that_was_dense_before_a_fold_stays_proven() -> None:
    folded = Folded(folds=(FoldedLog(**{**{f: getattr(FOLD, f) for f in FOLD.__struct_fields__}, "dense_to": 40}),))
    assert with_dense(folded, 40, ()) == {LOG}
    assert with_dense(folded, 41, ()) == set()
