"""Whatever a cluster looks like and whatever is archived of it: the units of a plan copy what is new, once."""

from collections import Counter
from dataclasses import dataclass
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from logkeep.kafka.admin.offsets import LogBounds
from logkeep.kafka.backup import plan as planning
from logkeep.kafka.backup.plan import Plan, plan_backup
from logkeep.kafka.backup.units import CopyRange
from logkeep.kafka.client.topology import Partition, Topic, TopicPartition
from logkeep.kafka.record.documents import ArchivedReach
from logkeep.model.ranges import Range, tile
from tests.property.untimed import untimed

FEWEST_RECORDS = 1_000
"""A piece is never cut finer."""


@dataclass(frozen=True)
class Situation:
    topics: tuple[Topic, ...]
    bounds: dict[TopicPartition, LogBounds]
    sizes: dict[TopicPartition, int]
    reached: dict[TopicPartition, ArchivedReach]
    unit_bytes: int

    def plan(self) -> Plan:
        return plan_backup(self.topics, self.bounds, self.sizes, self.reached, unit_bytes=self.unit_bytes)

    def topic_id(self, log: TopicPartition) -> UUID:
        return next(t.id for t in self.topics if t.name == log.topic)

    def begins(self, log: TopicPartition) -> int:
        """Where copying has to begin."""
        bound, known = self.bounds[log], self.reached.get(log)
        same = known is not None and known.history.split("-")[0] == self.topic_id(log).hex
        if known is None or not same or known.end > bound.high_watermark:
            return bound.start
        return max(bound.start, known.end)


@st.composite
def situations(draw: st.DrawFn) -> Situation:
    topics, logs, sizes, reached = [], {}, {}, {}
    for number in range(draw(st.integers(0, 4))):
        topic_id, before = UUID(int=2 * number + 1), UUID(int=2 * number + 2)
        leaders = draw(st.lists(st.integers(1, 3), min_size=1, max_size=6))
        topics.append(
            Topic(f"t{number}", topic_id, False, tuple(Partition(i, b, 0, (b,)) for i, b in enumerate(leaders)))
        )
        for index in range(len(leaders)):
            log = TopicPartition(f"t{number}", index)
            start = draw(st.integers(0, 5_000))
            end = start + draw(st.sampled_from([0, 1, 7, 999, 2_500, 60_000]) | st.integers(0, 100_000))
            logs[log] = LogBounds(start, end, end, 0)
            if draw(st.booleans()):
                sizes[log] = draw(st.integers(0, 40 << 30) | st.integers(0, 2 * planning.BUNDLE_BYTES))
            if draw(st.booleans()):
                history = draw(st.sampled_from([topic_id.hex, f"{topic_id.hex}-1", before.hex]))
                reached[log] = ArchivedReach(history, draw(st.integers(0, end + 10)), draw(st.integers(-1, 4)))
    return Situation(tuple(topics), logs, sizes, reached, draw(st.sampled_from([1 << 20, 100 << 20, 512 << 20])))


def ranges_of(plan: Plan) -> list[CopyRange]:
    return [r for unit in plan.units for r in unit.ranges]


@given(situations())
@untimed
def test_ranges_tile_what_is_new_of_every_log(situation: Situation) -> None:
    found: dict[TopicPartition, list[Range]] = {}
    for each in ranges_of(situation.plan()):
        assert each.lo < each.hi
        found.setdefault(TopicPartition(each.topic, each.partition), []).append(Range(each.lo, each.hi))
    for log, bound in situation.bounds.items():
        tiling = tile(Range(situation.begins(log), bound.high_watermark), found.pop(log, []))
        assert not tiling.gaps
        assert not tiling.overlaps
    assert not found


@given(situations())
@untimed
def test_nothing_outside_of_what_is_new_is_copied(situation: Situation) -> None:
    for each in ranges_of(situation.plan()):
        log = TopicPartition(each.topic, each.partition)
        assert situation.begins(log) <= each.lo < each.hi <= situation.bounds[log].high_watermark
        assert each.topic_id == situation.topic_id(log)


@given(situations())
@untimed
def test_every_log_is_in_the_cut_once_and_gaps_are_what_is_missing_before_it(situation: Situation) -> None:
    plan = situation.plan()
    assert Counter((c.log.name, c.log.partition) for c in plan.cut) == Counter(dict.fromkeys(situation.bounds, 1))
    cuts = {c.log: c for c in plan.cut}
    for gap in plan.gaps:
        known = situation.reached[TopicPartition(gap.log.name, gap.log.partition)]
        assert (gap.start, gap.end) == (known.end, cuts[gap.log].start)
        assert gap.start < gap.end


@given(situations())
@untimed
def test_the_first_piece_alone_belongs_to_the_start(situation: Situation) -> None:
    for each in ranges_of(situation.plan()):
        log = TopicPartition(each.topic, each.partition)
        assert each.first == (each.lo == situation.bounds[log].start)
        known = situation.reached.get(log)
        continues = known is not None and known.end == each.lo and each.history == known.history
        assert each.last_epoch == (known.last_epoch if known is not None and continues else -1)


@given(situations())
@untimed
def test_names_are_unique_and_the_same_again(situation: Situation) -> None:
    names = [u.name for u in situation.plan().units]
    assert len(set(names)) == len(names)
    assert [u.name for u in situation.plan().units] == names


@given(situations())
@untimed
def test_units_have_one_broker_and_stay_small(situation: Situation) -> None:
    leaders = {(t.name, p.index): p.leader for t in situation.topics for p in t.partitions}
    for unit in situation.plan().units:
        assert {leaders[r.topic, r.partition] for r in unit.ranges} == {unit.broker}
        if len(unit.ranges) > 1:
            assert len(unit.ranges) <= planning.BUNDLE_RANGES
            assert unit.size_bytes <= situation.unit_bytes
            assert all(r.size_bytes < planning.BUNDLE_BYTES for r in unit.ranges)


@given(situations())
@untimed
def test_a_range_above_the_size_of_a_unit_is_one_of_few_records(situation: Situation) -> None:
    for each in ranges_of(situation.plan()):
        if each.size_bytes > max(situation.unit_bytes, planning.BUNDLE_BYTES):
            assert each.hi - each.lo < 2 * FEWEST_RECORDS
