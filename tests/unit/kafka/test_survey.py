"""What a survey reads of an archive, and what it says of one that is damaged."""

from logkeep.kafka.restore.survey import Cut, LogSurvey, SurveyLog, SurveyUnit, survey
from logkeep.model.segments import Codec, Segment
from logkeep.repository import layout
from logkeep.repository.chain import Place
from logkeep.store.metered import MeteredStore
from tests.kafka.slow_records import Slow, batch_of
from tests.kafka.stored import LOG, place, written


def _log(batches: int, size: int = 1000) -> bytes:
    """Ten records in each batch, one millisecond apart."""
    records = [Slow(d, d, b"k", bytes(size)) for d in range(10)]
    return b"".join(
        batch_of(10 * b, records, base_time_ms=10 * b, max_time_ms=10 * b + 9) for b in range(batches)
    )


def _survey(where: Place, segments: list[Segment], until_ms: int | None = None) -> LogSurvey:
    log = SurveyLog(log=LOG, start=0, end=segments[-1].end, segments=tuple(segments), until_ms=until_ms)
    (found,) = survey(SurveyUnit(place=where, logs=(log,)), lambda _: None).logs
    return found
