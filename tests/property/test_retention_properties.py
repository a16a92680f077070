"""What retention promises for every history and every policy, not only for the golden ones."""

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkeep.errors import UsageError
from logkeep.repository.upkeep.retention import Candidate, Policy, RetentionVerdict, decide
from tests.property.untimed import untimed

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
TAGS = ("release", "nightly")

_NUMBERS = st.none() | st.integers(0, 6)
_AGES = st.integers(-3 * 24, 500 * 24).map(lambda hours: timedelta(hours=hours))
_UNION_RULES = ("keep_last", "keep_hourly", "keep_daily", "keep_weekly", "keep_monthly", "keep_yearly", "keep_days")


@st.composite
def histories(draw: st.DrawFn) -> list[Candidate]:
    """Backups in commit order whose clocks may disagree with that order."""
    candidates = []
    for number in range(1, draw(st.integers(0, 25)) + 1):
        state = draw(st.sampled_from(["good", "good", "good", "damaged", "unfinished"]))
        held = draw(st.integers(0, 5)) == 0
        candidate = Candidate(
            id=number,
            committed=NOW - draw(_AGES),
            good=state == "good",
            damaged=state == "damaged",
            held=held,
            tags=draw(st.sampled_from([(), (), (), *((t,) for t in TAGS)])),
            generation=number * 3,
        )
        candidates.append(candidate)
    return candidates


def policies(*, bounded: bool = True) -> st.SearchStrategy[Policy]:
    rules = dict.fromkeys((*_UNION_RULES, "keep_min_count"), _NUMBERS)
    return st.builds(
        Policy,
        **rules,
        keep_count=_NUMBERS if bounded else st.none(),
        keep_within=st.none() | st.integers(0, 2000).map(lambda hours: timedelta(hours=hours)),
        keep_tags=st.sampled_from([(), (), ("release",), TAGS]),
        delete_damaged=st.booleans(),
    )


def _removed(verdicts: list[RetentionVerdict]) -> set[int]:
    return {v.id for v in verdicts if not v.keep}


@untimed
@given(histories(), policies())
def test_every_candidate_gets_one_verdict_in_commit_order_with_a_reason(
    candidates: list[Candidate], policy: Policy
) -> None:
    verdicts = decide(candidates, policy, NOW)
    assert [v.id for v in verdicts] == [c.id for c in candidates]
    assert all(v.reasons and all(v.reasons) for v in verdicts)


@untimed
@given(histories(), policies())
def test_the_newest_good_backup_stays(candidates: list[Candidate], policy: Policy) -> None:
    good = [c.id for c in candidates if c.good]
    past = [c.id for c in candidates if c.good and c.committed <= NOW]
    assert not _removed(decide(candidates, policy, NOW)) & {*good[-1:], *past[-1:]}


@untimed
@given(histories(), policies())
def test_held_tagged_future_and_unfinished_backups_stay(candidates: list[Candidate], policy: Policy) -> None:
    untouchable = {
        c.id
        for c in candidates
        if c.held or set(c.tags) & set(policy.keep_tags) or c.committed > NOW or not (c.good or c.damaged)
    }
    assert not _removed(decide(candidates, policy, NOW)) & untouchable


@untimed
@given(histories(), policies())
def test_the_floor_holds(candidates: list[Candidate], policy: Policy) -> None:
    counted = [c.id for c in candidates if c.good and c.committed <= NOW]
    protected = counted[-policy.floor :] if policy.floor else []
    assert not _removed(decide(candidates, policy, NOW)) & set(protected)


@untimed
@given(histories(), policies())
def test_damaged_and_future_backups_change_no_other_verdict(candidates: list[Candidate], policy: Policy) -> None:
    def counts(candidate: Candidate) -> bool:
        return candidate.good and candidate.committed <= NOW

    alone = decide([c for c in candidates if counts(c)], policy, NOW)
    beside = {v.id: v for v in decide(candidates, policy, NOW)}
    assert alone == [beside[v.id] for v in alone]


@untimed
@given(histories(), policies())
def test_damaged_backups_go_only_with_permission_and_beside_a_good_one(
    candidates: list[Candidate], policy: Policy
) -> None:
    gone = _removed(decide(candidates, policy, NOW)) & {c.id for c in candidates if c.damaged}
    assert not gone or (policy.delete_damaged and any(c.good for c in candidates))


@untimed
@given(histories(), policies(), st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(candidates: list[Candidate], policy: Policy, chance: Random) -> None:
    shuffled = list(candidates)
    chance.shuffle(shuffled)
    assert decide(shuffled, policy, NOW) == decide(candidates, policy, NOW)


@untimed
@given(histories(), st.booleans(), _NUMBERS)
def test_an_empty_policy_removes_nothing(candidates: list[Candidate], delete_damaged: bool, floor: int | None) -> None:
    verdicts = decide(candidates, Policy(delete_damaged=delete_damaged, keep_min_count=floor), NOW)
    assert all(v.keep and v.reasons == ("no policy",) for v in verdicts)


@untimed
@given(histories(), policies(bounded=False), st.sampled_from(_UNION_RULES), st.integers(1, 9))
def test_without_a_bound_one_more_rule_never_removes_more(
    candidates: list[Candidate], policy: Policy, rule: str, more: int
) -> None:
    if policy.empty:  # the first rule is what makes a policy remove anything
        policy = replace(policy, keep_last=1)
    change: dict[str, Any] = {rule: (getattr(policy, rule) or 0) + more}
    wider = replace(policy, **change)
    assert _removed(decide(candidates, wider, NOW)) <= _removed(decide(candidates, policy, NOW))


@untimed
@given(histories(), policies(bounded=False), st.integers(1, 8))
def test_a_bound_only_removes_and_leaves_its_number_beside_the_safe_ones(
    candidates: list[Candidate], policy: Policy, bound: int
) -> None:
    bounded = replace(policy, keep_count=bound)
    kept = {v.id for v in decide(candidates, bounded, NOW) if v.keep}
    unbounded = {v.id for v in decide(candidates, replace(policy, keep_min_count=bounded.floor), NOW) if v.keep}
    assert kept <= unbounded
    counted = [c for c in reversed(candidates) if c.good and c.committed <= NOW and c.id in unbounded]
    safe = {c.id for c in counted if c.held or set(c.tags) & set(policy.keep_tags)}
    safe |= {c.id for c in [c for c in reversed(candidates) if c.good and c.committed <= NOW][: max(1, bounded.floor)]}
    assert kept & {c.id for c in counted} == {c.id for c in counted[:bound]} | (safe & {c.id for c in counted})


@untimed
@given(histories(), policies())
def test_applied_again_at_the_same_time_a_policy_removes_nothing_more(
    candidates: list[Candidate], policy: Policy
) -> None:
    """Holds for all rules together: what was kept keeps its place or bucket when others leave."""
    gone = _removed(decide(candidates, policy, NOW))
    assert not _removed(decide([c for c in candidates if c.id not in gone], policy, NOW))


@pytest.mark.parametrize("name", [f.name for f in fields(Policy) if f.name not in {"keep_tags", "delete_damaged"}])
def test_negative_numbers_are_refused_by_the_name_of_their_flag(name: str) -> None:
    value: Any = timedelta(seconds=-1) if name == "keep_within" else -1
    with pytest.raises(UsageError, match="--" + name.replace("_", "-")):
        Policy(**{name: value})


def test_very_large_numbers_keep_everything() -> None:
    old = Candidate(id=1, committed=datetime(1971, 1, 1, tzinfo=UTC), good=True)
    new = Candidate(id=2, committed=NOW, good=True)
    for policy in (Policy(keep_days=10**12, keep_min_count=0), Policy(keep_within=timedelta.max)):
        assert all(v.keep for v in decide([old, new], policy, NOW))


def test_an_age_of_exactly_the_limit_is_kept() -> None:
    newest = Candidate(id=3, committed=NOW, good=True)
    edge = Candidate(id=2, committed=NOW - timedelta(days=7), good=True)
    beyond = Candidate(id=1, committed=NOW - timedelta(days=7, microseconds=1), good=True)
    for policy in (Policy(keep_days=7, keep_min_count=0), Policy(keep_within=timedelta(days=7))):
        assert _removed(decide([beyond, edge, newest], policy, NOW)) == {1}
