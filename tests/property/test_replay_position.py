"""Where a replay goes on, for any stream, any end of the target's log and any memory of the broker."""

from dataclasses import dataclass

from hypothesis import assume, given
from hypothesis import strategies as st

from logkeep.kafka.restore.facts.units import ReplayOutcome
from logkeep.kafka.restore.replay.resume_point import (
    SEQUENCES,
    StreamStep,
    TargetEnd,
    check_resume,
    lost_records,
    records_ahead,
)

WIDE = st.one_of(st.integers(1, 20), st.integers(1, 2**31 - 1))
"""Records of a batch, offsets of a hole: small ones, and such that sequence numbers soon begin again."""


@dataclass(frozen=True)
class Plan:
    """A stream and the place of its producer's first record."""

    steps: list[StreamStep]
    position: int

    @property
    def end(self) -> StreamStep:
        last = self.steps[-1]
        return StreamStep(
            last.end, last.end, last.sent + (0 if last.hole or last.start < self.position else last.end - last.start)
        )

    def first_unpassed(self, standing: TargetEnd) -> StreamStep:
        return next((step for step in self.steps if not step.passed(standing)), self.end)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Batches and holes back to back; the producer began at the border of one of the first steps."""
    kinds = draw(st.lists(st.tuples(st.booleans(), WIDE), min_size=1, max_size=12))
    base = draw(st.integers(0, 1000))
    before = draw(st.integers(0, len(kinds) - 1))
    position = base + sum(width for _, width in kinds[:before])
    steps, at, sent = [], base, 0
    for hole, width in kinds:
        steps.append(StreamStep(at, at + width, sent, hole))
        sent += 0 if hole or at < position else width
        at += width
    return Plan(steps, position)


def _end_of_holes(plan: Plan, at: StreamStep) -> int:
    """Up to where there are only holes from this step on."""
    end = at.start
    for step in plan.steps:
        end = step.end if step.hole and step.start == end else end
    return end


def _memory(sent: int) -> int | None:
    """What a broker remembers after so many records."""
    return (sent - 1) % SEQUENCES if sent else None


@st.composite
def reached(draw: st.DrawFn) -> tuple[Plan, StreamStep, int]:
    """A plan, the step it has to go on with, and where the log ends: at its start, or somewhere in a hole."""
    plan = draw(plans())
    at = draw(st.sampled_from([*(s for s in plan.steps if s.start >= plan.position), plan.end]))
    return plan, at, draw(st.integers(at.start, at.end - 1)) if at.hole else at.start


@given(reached())
def test_a_replay_goes_on_where_it_ended(case: tuple[Plan, StreamStep, int]) -> None:
    plan, at, log_end = case
    standing = TargetEnd(log_end, _memory(at.sent))
    assert plan.first_unpassed(standing) == at
    assert check_resume(standing, at, plan.position) is None
    assert not lost_records(standing, at)


@given(reached(), st.integers(1, 2**30 - 1))
def test_the_memory_may_be_ahead_of_the_log(case: tuple[Plan, StreamStep, int], later: int) -> None:
    """Requests that are still arriving: what is sent again is recognised or refused, and then it is asked again."""
    plan, at, log_end = case
    assert check_resume(TargetEnd(log_end, _memory(at.sent + later)), at, plan.position) is None


@given(reached(), st.integers(1, 2**30))
def test_offsets_that_our_producer_did_not_write_are_seen(case: tuple[Plan, StreamStep, int], foreign: int) -> None:
    """A log that is longer by somebody else's records never passes for one of ours, unless they lie in a hole.

    What fills a hole has no sequence number of ours; there it is left to the proof.
    """
    plan, at, log_end = case
    assume(log_end + foreign > _end_of_holes(plan, at))
    standing = TargetEnd(log_end + foreign, _memory(at.sent))
    head = plan.first_unpassed(standing)
    assume(head.sent - at.sent < SEQUENCES // 2)
    found = check_resume(standing, head, plan.position)
    assert found is not None
    assert found.outcome is (ReplayOutcome.FORGOTTEN if at.sent == 0 and head.sent else ReplayOutcome.FOREIGN)


@given(reached())
def test_a_producer_that_wrote_and_is_not_known(case: tuple[Plan, StreamStep, int]) -> None:
    plan, at, log_end = case
    found = check_resume(TargetEnd(log_end, None), at, plan.position)
    assert (found.outcome if found else None) == (ReplayOutcome.FORGOTTEN if at.sent else None)


@given(plans(), st.data())
def test_a_log_that_ends_before_the_plan(plan: Plan, data: st.DataObject) -> None:
    assume(plan.position > 0)
    standing = TargetEnd(data.draw(st.integers(0, plan.position - 1)), None)
    found = check_resume(standing, plan.first_unpassed(standing), plan.position)
    assert found is not None
    assert found.outcome is ReplayOutcome.GONE


@given(st.integers(0, 2**40), st.integers(-(2**30), 2**30 - 1))
def test_differences_survive_the_wrap_of_sequences(sent: int, difference: int) -> None:
    assume(sent - difference > 0)
    assert records_ahead(TargetEnd(0, _memory(sent - difference)), sent) == difference


def test_a_batch_over_the_last_sequence_number() -> None:
    """As seen on a broker: 2147483646 with three records, then 1."""
    following = StreamStep(2**31 + 1, 2**31 + 4, 2**31 + 1)
    assert check_resume(TargetEnd(2**31 + 1, 0), following, 0) is None
