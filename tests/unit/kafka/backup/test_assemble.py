"""The results of all units of a backup, joined."""

import pytest

from logkeep.errors import BackupFailed, ClusterNotReady, NotAuthorised
from logkeep.kafka.backup.assemble import (
    Assembled,
    assemble,
    changed_log_findings,
    changed_logs,
    deleted_logs,
    exit_code,
    join_rounds,
    refuse_failures,
    refuse_unconfirmed_deletions,
)
from logkeep.kafka.backup.plan import Plan, history_of
from logkeep.kafka.backup.units import CopyOutcome, CopyResult, RangeResult
from logkeep.kafka.logs.leader_epochs import EpochRun
from logkeep.kafka.logs.lost_offset import Cause
from logkeep.model.findings import Severity
from logkeep.model.segments import Collection, LogName, Segment
from logkeep.repository.backups.manifest import KnownGap, LogCut
from tests.support.kafka.cluster_values import OTHER_ID, topic

A, B = LogName(Collection.TOPICS, "a", "aa", 0), LogName(Collection.TOPICS, "b", "bb", 0)
BEFORE = KnownGap(B, 3, 5, "retention removed it before it was copied")


def segment(log: LogName, start: int, end: int) -> Segment:
    return Segment(
        log=log, start=start, end=end, first=start, token=f"{start:016x}", records=end - start, stored_bytes=1,
        plain_bytes=1, base_time_ms=0, max_time_ms=0, sha256="0" * 64, plain_sha256="0" * 64,
    )  # fmt: skip


def copied(log: LogName, lo: int, hi: int, *, have: int | None = None, epochs: tuple[EpochRun, ...] = ()) -> CopyResult:
    """A unit `[lo, hi)` that found something from `have` on."""
    one = RangeResult(log=log, lo=lo, hi=hi, outcome=CopyOutcome.COPIED, reached=hi, epochs=epochs)
    return CopyResult(unit=f"{log}/{lo}", ranges=(one,), segments=(segment(log, lo if have is None else have, hi),))


def ended(log: LogName, lo: int, hi: int, outcome: CopyOutcome, cause: Cause = Cause.NONE) -> CopyResult:
    one = RangeResult(log=log, lo=lo, hi=hi, outcome=outcome, cause=cause, detail="as told", reached=lo)
    return CopyResult(unit=f"{log}/{lo}", ranges=(one,), segments=())


def plan(*cuts: LogCut, gaps: tuple[KnownGap, ...] = (), new: tuple[LogName, ...] = ()) -> Plan:
    return Plan(cuts, (), gaps, new)


def test_units_of_all_logs_become_segments_of_the_cut() -> None:
    cuts = (LogCut(A, 0, 20), LogCut(B, 5, 9))
    made = assemble(plan(*cuts), [copied(A, 10, 20), copied(B, 5, 9), copied(A, 0, 10)])
    assert made.cut == cuts
    assert [(s.log, s.start, s.end) for s in made.segments] == [(A, 0, 10), (A, 10, 20), (B, 5, 9)]
    assert (made.gaps, made.findings) == ((), ())


def test_a_log_with_nothing_new_stays_in_the_cut() -> None:
    made = assemble(plan(LogCut(A, 0, 20)), [])
    assert (made.cut, made.segments, made.tips) == ((LogCut(A, 0, 20),), (), {})


def test_gaps_of_the_plan_and_of_the_copy_are_both_told() -> None:
    made = assemble(plan(LogCut(A, 0, 20), LogCut(B, 5, 5), gaps=(BEFORE,)), [copied(A, 0, 20, have=7)])
    assert made.gaps == (BEFORE, KnownGap(A, 0, 7, "retention removed it while the backup ran"))
    assert [(s.start, s.end) for s in made.segments] == [(7, 20)]


def test_a_gap_that_was_planned_for_a_history_that_ended_is_none() -> None:
    made = assemble(plan(LogCut(A, 0, 20), LogCut(B, 5, 9), gaps=(BEFORE,)), [copied(A, 0, 20), copied(B, 5, 9)], {B})
    assert made.gaps == ()


def test_a_log_that_became_another_leaves_nothing_of_its_units() -> None:
    results = [copied(A, 0, 10), ended(A, 10, 20, CopyOutcome.NEW_HISTORY, Cause.TRUNCATED), copied(B, 5, 9)]
    made = assemble(plan(LogCut(A, 0, 20), LogCut(B, 5, 9)), results, {A})
    assert made.cut == (LogCut(B, 5, 9),)
    assert {s.log for s in made.segments} == {B}
    assert [r.log for r in changed_logs(results)] == [A]


@pytest.mark.parametrize(
    ("cause", "words"), [(Cause.RECREATED, "re-created while the backup ran"), (Cause.DELETED, "was deleted while")]
)
def test_a_topic_that_was_deleted_is_kept_as_far_as_it_was_copied(cause: Cause, words: str) -> None:
    results = [copied(A, 0, 10), ended(A, 10, 20, CopyOutcome.NEW_HISTORY, cause), copied(B, 5, 9)]
    assert changed_logs(results) == []
    made = assemble(plan(LogCut(A, 0, 20), LogCut(B, 5, 9)), results)
    assert made.cut == (LogCut(A, 0, 20), LogCut(B, 5, 9))
    assert [(s.log, s.start, s.end) for s in made.segments] == [(A, 0, 10), (B, 5, 9)]
    assert made.gaps == (KnownGap(A, 10, 20, "the topic was deleted before it was copied"),)
    (finding,) = made.findings
    assert (finding.code, finding.where, finding.severity) == ("topic-ended", "a", Severity.WARNING)
    assert words in finding.what


def test_a_second_round_adds_what_the_first_one_left() -> None:
    other = LogName(Collection.TOPICS, "a", "cc", 0)
    first = assemble(
        plan(LogCut(A, 0, 20), LogCut(B, 5, 9)), [ended(A, 0, 20, CopyOutcome.NEW_HISTORY), copied(B, 5, 9)], {A}
    )
    second = assemble(plan(LogCut(other, 0, 4)), [copied(other, 0, 4, epochs=(EpochRun(1, 0, 4),))])
    whole = join_rounds(first, second)
    assert whole.cut == (LogCut(B, 5, 9), LogCut(other, 0, 4))
    assert [s.log for s in whole.segments] == [B, other]
    assert whole.tips == {other: EpochRun(1, 0, 4)}


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (Cause.TRUNCATED, "lost its end while"),
        (Cause.UNKNOWN_EPOCH, "not the one that was archived while"),
    ],
)
def test_a_log_that_became_another_is_told_once(cause: Cause, words: str) -> None:
    left = changed_logs(
        [ended(A, 0, 10, CopyOutcome.NEW_HISTORY, cause), ended(A, 10, 20, CopyOutcome.NEW_HISTORY, cause)]
    )
    (finding,) = changed_log_findings(left)
    assert (finding.code, finding.severity, finding.where) == ("new-history", Severity.WARNING, "a/0")
    assert words in finding.what


def test_a_new_history_of_the_plan_is_told_with_its_reason() -> None:
    lost = LogName(Collection.TOPICS, "b", "bb-1", 0)
    again, truncated = assemble(plan(LogCut(A, 0, 0), LogCut(lost, 0, 0), new=(A, lost)), []).findings
    assert again.severity is Severity.NOTE
    assert "deleted and re-created since the last backup" in again.what
    assert truncated.severity is Severity.WARNING
    assert "lost its end since the last backup" in truncated.what


def test_the_last_epoch_is_the_one_of_the_highest_offset() -> None:
    """Epochs of a log rise with its offsets; units come back in any order."""
    late = copied(A, 10, 20, epochs=(EpochRun(4, 10, 15), EpochRun(6, 15, 19)))
    early = copied(A, 0, 10, epochs=(EpochRun(1, 0, 5), EpochRun(4, 5, 10)))
    for results in ([early, late], [late, early]):
        assert assemble(plan(LogCut(A, 0, 20)), results).tips == {A: EpochRun(6, 15, 19)}


def test_what_cannot_be_copied_fails_the_backup_by_name() -> None:
    with pytest.raises(NotAuthorised) as denied:
        refuse_failures([copied(B, 5, 9), ended(A, 0, 10, CopyOutcome.DENIED)])
    assert (denied.value.subject, denied.value.exit_code) == ("a/0", NotAuthorised.exit_code)
    with pytest.raises(BackupFailed, match=r"older than Kafka 0\.11: as told"):
        refuse_failures([ended(A, 0, 10, CopyOutcome.OLD_FORMAT)])
    refuse_failures([copied(A, 0, 10), ended(B, 0, 10, CopyOutcome.NEW_HISTORY)])


@pytest.mark.parametrize(
    ("gaps", "warnings", "allow_gaps", "code"),
    [(0, 0, False, 0), (0, 0, True, 0), (0, 1, False, 2), (1, 0, False, 21), (1, 5, False, 21), (1, 0, True, 2)],
)
def test_exit_codes(gaps: int, warnings: int, allow_gaps: bool, code: int) -> None:
    assert exit_code(gaps, warnings, allow_gaps=allow_gaps) == code


def test_a_gap_between_two_units_is_told_where_it_is() -> None:
    made: Assembled = assemble(
        plan(LogCut(A, 0, 30)), [copied(A, 0, 10), copied(A, 10, 20, have=14), copied(A, 20, 30)]
    )
    assert [(g.start, g.end) for g in made.gaps] == [(10, 14)]


def test_a_topic_that_is_there_after_all_was_not_deleted() -> None:
    """One broker did not know it for a while: nothing is given up for that."""
    again = topic("orders")
    log = LogName(Collection.TOPICS, "orders", history_of(again), 0)
    results = [ended(log, 0, 20, CopyOutcome.NEW_HISTORY, Cause.DELETED)]
    refuse_unconfirmed_deletions(deleted_logs(results), [topic("orders", topic_id=OTHER_ID)])
    with pytest.raises(ClusterNotReady, match="it exists"):
        refuse_unconfirmed_deletions(deleted_logs(results), [again])


def test_a_batch_that_reaches_over_the_cut_takes_the_cut_with_it() -> None:
    """The log lost its end and grew again between the look and the copy: the next run must not begin inside a batch."""
    made = assemble(plan(LogCut(A, 0, 67)), [copied(A, 0, 70, epochs=(EpochRun(4, 0, 70),))])
    assert made.cut == (LogCut(A, 0, 70),)
