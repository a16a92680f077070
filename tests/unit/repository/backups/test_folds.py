"""Which backups a fold honoured, and which restore points are left."""

import pytest
from msgspec.structs import replace

from logkeep.model.segments import Collection, LogName
from logkeep.repository.backups.folds import folded_over, is_restore_point, restore_points, with_dense
from logkeep.repository.backups.manifest import LogCut
from logkeep.repository.chain import layout
from logkeep.repository.chain.actions import (
    Action,
    Commit,
    FoldProof,
    HonouredCut,
    ObjectRef,
    RepairAction,
    ReplaceAction,
    ReplayedAction,
    version_for,
)
from logkeep.repository.chain.commits import SourceRef, put_checkpoint
from logkeep.repository.chain.documents import seal, unseal
from logkeep.repository.chain.fold import Burial, Checkpoint, Folded, FoldedCut, FoldedLog, Folding
from logkeep.store.memory import MemoryStore

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
    folded = Folded(folds=(replace(FOLD, dense_to=40),))
    assert with_dense(folded, 40, ()) == {LOG}
    assert with_dense(folded, 41, ()) == set()


PROOF = FoldProof(
    log=LOG, start=0, end=100, last_id=40, cuts=(HonouredCut(40, 20, 100, 7, "lp1:7:0"),), dropped_tombstones=False,
    dense=True, records_before=90, records_after=7, stored_before=900, stored_after=70, digest_before="a",
    digest_after="b",
)  # fmt: skip


def _commit(action: Action) -> bytes:
    return seal(
        Commit(
            version=version_for(action), repository="r", source="prod", generation=3, previous="p", run="run",
            nonce="n", time="2026-11-18T00:00:00Z", action=action,
        )
    )  # fmt: skip


def test_only_a_fold_makes_a_replacement_of_version_2() -> None:
    """A merge has the bytes that it always had: every release reads it."""
    merge, fold = _commit(ReplaceAction((), "merged")), _commit(ReplaceAction((), "folded", fold=PROOF))
    assert b'"version":1' in merge
    assert b'"fold"' not in merge
    assert b'"version":2' in fold
    repaired = RepairAction(1, (ReplayedAction(2, "t", ReplaceAction((), "folded", fold=PROOF)),), "lost")
    assert version_for(repaired) == 2
    assert unseal(fold, Commit, "commit").action == ReplaceAction((), "folded", fold=PROOF)


def test_the_last_fold_of_a_log_is_remembered_with_the_widest_span() -> None:
    folding = Folding(Folded())
    for generation, (end, last_id) in enumerate(((100, 40), (80, 50)), 1):
        proof = replace(PROOF, end=end, last_id=last_id, dense=generation == 1)
        folding.replay(ReplayedAction(generation, f"t{generation}", ReplaceAction((), "folded", fold=proof)), "here")
    (found,) = folding.result().folds or ()
    assert (found.start, found.end, found.last_id, found.generation) == (0, 100, 50, 2)
    assert found.dense_to == 40, "the second fold found the holes of the first"


def test_a_checkpoint_that_knows_of_a_fold_has_version_2() -> None:
    place = SourceRef(MemoryStore(), "r" * 32, "prod")
    for folded, version in ((Folded(), 1), (Folded(folds=(FOLD,)), 2)):
        ref = put_checkpoint(place, folded, "0" * 15 + str(version))
        data = place.store.get(layout.checkpoint("prod", 0, ref.token), 1 << 20)
        assert unseal(data, Checkpoint, "checkpoint").version == version
        assert unseal(data, Checkpoint, "checkpoint").folded == folded
