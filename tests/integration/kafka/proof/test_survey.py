"""A point in time lies where the broker itself says that it lies, in logs of every shape."""

import random
from itertools import chain

import pytest

from logkeep.formats.kafka.batches import walk
from logkeep.formats.kafka.records import RecordColumns, decode
from logkeep.kafka.backup.claims import join_claims
from logkeep.kafka.backup.copy.copy_task import copy_ranges
from logkeep.kafka.restore.facts.survey_task import Cut, RestoreSurveyUnit, SurveyLog, survey
from logkeep.repository.chain.commits import SourceRef
from tests.support.kafka.copied_logs import archived, unit_of, whole_range
from tests.support.kafka.plain_client import PlainBrokers

pytestmark = pytest.mark.xdist_group("kafka-proof")


def _times(data: bytes) -> list[int]:
    parts = (p for p in decode(data, walk(data).batches) if isinstance(p, RecordColumns))
    return sorted(set(chain.from_iterable(p.times_ms.tolist() for p in parts)))


@pytest.mark.parametrize("segment_bytes", [1_000, 1 << 30])
def test_a_point_in_time_is_the_brokers_own(
    brokers: PlainBrokers, shapes: list[str], place: SourceRef, segment_bytes: int
) -> None:
    ranges = [whole_range(brokers, topic, 0) for topic in shapes]
    result = copy_ranges(unit_of("u", place, brokers, ranges, segment_bytes=segment_bytes), lambda _: None)
    looked = 0
    for one, wanted in zip(sorted(join_claims([result]), key=lambda j: shapes.index(j.log.name)), ranges, strict=True):
        known = [t for t in _times(b"".join(archived(place, one.segments))) if t >= 0]
        chosen = random.Random(7).sample(known, min(len(known), 12))
        moments = sorted({0, known[-1] + 1, *(t + more for t in chosen for more in (0, 1))})
        logs = tuple(
            SurveyLog(log=one.log, start=wanted.lo, end=wanted.hi, segments=tuple(one.segments), until_ms=moment)
            for moment in moments
        )
        for moment, found in zip(
            moments, survey(RestoreSurveyUnit(place=place, logs=logs), lambda _: None).logs, strict=True
        ):
            answer = brokers.offset(one.log.name, 0, moment)
            assert not found.damage
            if found.cut is Cut.BEFORE:
                assert found.records == 0
                assert found.end == wanted.lo
            else:
                assert found.end == (answer if answer >= 0 else wanted.hi), (str(one.log), moment)
                assert (found.cut is Cut.BEHIND) == (answer < 0)
            looked += 1
    assert looked > 60
