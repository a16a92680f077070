"""The meaning of commits, tested with values: every action, and every impossible step."""

from collections.abc import Sequence

import msgspec
import pytest

from logkeep.errors import Damaged, FormatTooNew
from logkeep.model.segments import Collection, LogName
from logkeep.repository.chain.actions import (
    WITH_BURIAL,
    Action,
    BackupAction,
    BegunCatchUp,
    BuriedLog,
    BuryAction,
    CheckpointAction,
    Commit,
    DeleteAction,
    EndedCatchUp,
    FailedAction,
    GenerationsAction,
    HoldAction,
    ObjectRef,
    PartRef,
    PartReplacement,
    ReleaseAction,
    RepairAction,
    ReplaceAction,
    ReplayedAction,
    Summary,
    version_for,
)
from logkeep.repository.chain.documents import SourceDocument, seal, unseal
from logkeep.repository.chain.fold import Folded, Folding

SUMMARY = Summary(started="t", logs=1, segments=1, records=1, stored_bytes=1, new_bytes=1)


def token(number: int) -> str:
    return f"{number:016x}"


def backup(backup_id: int) -> BackupAction:
    return BackupAction(backup_id, ObjectRef(token(backup_id), 1, "0" * 64), SUMMARY)


def part(number: int) -> PartRef:
    return PartRef(token(number), 1, "0" * 64, 1)


def folded(actions: Sequence[Action], start: Folded | None = None) -> Folded:
    folding = Folding(start or Folded())
    for number, action in enumerate(actions, folding.generation + 1):
        folding.apply(commit(action, number, folding.head), f"seal-{number}", f"commit {number}")
    return folding.result()


def commit(action: Action, generation: int, previous: str) -> Commit:
    return Commit(
        repository="r", source="s", generation=generation, previous=previous, run="x", nonce="y",
        time=f"time-{generation}", action=action,
    )  # fmt: skip


def test_backups_complete_fail_are_held_and_deleted() -> None:
    result = folded([backup(3), FailedAction(4, "why"), backup(9), HoldAction(3, "audit"), DeleteAction((9,), "x")])
    assert [(e.id, e.hold) for e in result.completed] == [(3, "audit")]
    assert [(f.id, f.reason) for f in result.failed] == [(4, "why")]
    assert (result.last_id, result.generation, result.head) == (9, 5, "seal-5")
    assert folded([ReleaseAction(3)], result).completed[0].hold is None


@pytest.mark.parametrize(
    "actions",
    [
        [backup(3), backup(3)],
        [backup(3), backup(2)],
        [backup(3), FailedAction(3, "")],
        [FailedAction(3, ""), backup(3)],
        [DeleteAction((1,), "")],
        [backup(3), DeleteAction((3, 4), "")],
        [backup(3), DeleteAction((3,), ""), HoldAction(3, "")],
        [FailedAction(3, ""), ReleaseAction(3)],
        [backup(3), RepairAction(1, (ReplayedAction(2, "t", backup(3)),), "")],
        [backup(3), backup(4), RepairAction(1, (), "")],
    ],
)
def test_the_impossible_is_damage(actions: list[Action]) -> None:
    with pytest.raises(Damaged):
        folded(actions)


def test_a_link_must_follow_and_fit() -> None:
    folding = Folding(folded([backup(1)]))
    with pytest.raises(Damaged, match="generation 2 is missing"):
        folding.apply(commit(backup(2), 3, "seal-1"), "s", "x")
    with pytest.raises(Damaged, match="follows another commit"):
        folding.apply(commit(backup(2), 2, "forged"), "s", "x")


def test_only_a_repair_may_skip_generations() -> None:
    folding = Folding(folded([backup(1)]))
    replayed = (ReplayedAction(2, "then", backup(2)), ReplayedAction(3, "later", HoldAction(2, "legal")))
    folding.apply(commit(RepairAction(1, replayed, "lost"), 4, "seal-1"), "s", "x")
    result = folding.result()
    assert (result.generation, result.repaired_generation) == (4, 4)
    assert [(e.id, e.committed, e.hold) for e in result.completed] == [(1, "time-1", None), (2, "then", "legal")]


def test_replacements_lead_on_in_one_step_and_are_forgotten_with_the_last_old_backup() -> None:
    first = ReplaceAction((PartReplacement(token(10), (part(20),)),), "merged")
    again = ReplaceAction((PartReplacement(token(20), (part(30), part(31))),), "merged")
    result = folded([backup(1), first, backup(2), again])
    assert {r.old: r.new for r in result.replacements} == {
        token(10): (part(30), part(31)),
        token(20): (part(30), part(31)),
    }
    assert folded([DeleteAction((1, 2), "")], result).replacements == ()


def test_a_checkpoint_changes_nothing_but_the_generation() -> None:
    before = folded([backup(1)])
    after = folded([CheckpointAction(ObjectRef(token(1), 1, "0" * 64), "fence")], before)
    assert (after.completed, after.generation) == (before.completed, 2)


def test_folding_in_two_parts_is_folding_at_once() -> None:
    actions: list[Action] = [backup(1), backup(2), HoldAction(1, "x"), FailedAction(5, "y"), DeleteAction((2,), "z")]
    for cut in range(len(actions)):
        assert folded(actions[cut:], folded(actions[:cut])) == folded(actions)


BURIED = BuriedLog(LogName(Collection.TOPICS, "orders", "a", 0), ObjectRef(token(7), 24, "0" * 64), 2)


def test_offsets_are_buried_from_one_backup_on() -> None:
    result = folded([backup(3), BuryAction(9, (BURIED,), "compared"), backup(9), DeleteAction((9,), "x")])
    assert [b.log for b in result.burials(9)] == [BURIED.log]
    assert result.burials(10) == result.burials(9), "deleting a backup brings nothing back"
    assert result.burials(3) == ()


def test_a_backup_that_failed_buries_nothing() -> None:
    """The offsets that it read may be other records when the next backup copies them."""
    kept = BuryAction(5, (BURIED,), "compared")
    result = folded([kept, backup(5), BuryAction(9, (BURIED,), "compared"), FailedAction(9, "owner lost")])
    assert [b.first for b in result.burials(10)] == [5]


def test_a_chain_without_burials_is_written_as_before() -> None:
    assert b"buried" not in msgspec.json.encode(folded([backup(3)]))


def test_an_earlier_release_ends_at_a_commit_that_buries() -> None:
    """Its newest version is 1, also where a repair replays the burial."""
    bury = BuryAction(9, (BURIED,), "compared")
    replayed = RepairAction(1, (ReplayedAction(2, "t", bury),), "lost")
    for action in (bury, replayed):
        assert version_for(action) == WITH_BURIAL
        made = msgspec.structs.replace(commit(action, 2, "x"), version=version_for(action))

        class EarlierCommit(SourceDocument, frozen=True, kw_only=True, tag="commit"):
            generation: int

        with pytest.raises(FormatTooNew):
            unseal(seal(made), EarlierCommit, "commit 2")
    assert version_for(backup(3)) == 1


CATCH_UP = BegunCatchUp("c" * 16, "accounts", "id-1", 1, "asked for")


def test_a_backup_switches_a_catch_up_in_one_commit() -> None:
    began = GenerationsAction(begun=(CATCH_UP,))
    before = folded([backup(3), began])
    assert [(c.token, c.number, c.generation) for c in before.catch_ups or ()] == [("c" * 16, 1, 2)]
    after = folded([backup(3), began, msgspec.structs.replace(backup(5), switched=("c" * 16,))])
    assert not after.catch_ups
    assert [(s.topic, s.number) for s in after.generation_starts or ()] == [("accounts", 1)]
    ended = folded([backup(3), began, GenerationsAction(ended=(EndedCatchUp("c" * 16, "why"),))])
    assert not ended.catch_ups
    assert [s.number for s in ended.generation_starts or ()] == [1], "its number is not used again"


def test_a_backup_counts_although_the_commit_of_its_catch_up_is_lost() -> None:
    assert folded([msgspec.structs.replace(backup(5), switched=("c" * 16,))]).entry(5) is not None


def test_a_chain_without_generations_is_written_as_before() -> None:
    data = msgspec.json.encode(folded([backup(3)]))
    assert b"catch_ups" not in data
    assert b"generation_starts" not in data
    assert b"switched" not in msgspec.json.encode(backup(3))


def test_an_earlier_release_ends_at_a_commit_about_generations() -> None:
    for action in (GenerationsAction(begun=(CATCH_UP,)), msgspec.structs.replace(backup(5), switched=("c" * 16,))):
        assert version_for(action) == WITH_BURIAL
        assert version_for(RepairAction(1, (ReplayedAction(2, "t", action),), "lost")) == WITH_BURIAL
    assert folded([GenerationsAction(begun=(CATCH_UP,))]).version == 2
