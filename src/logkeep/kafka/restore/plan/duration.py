"""How long a restore will take, and whether it can afford to keep every offset. Pure.

Rates of markers, fillers and plain batches are what one partition showed on one real broker on two cores; those of
re-encoding and of the proof are assumed, not measured. A hole costs a transaction of its own, and its marker must be
in the log before anything else may be sent: so holes, not bytes, decide about `preserve`. Records that are left out for
their time, wherever they stand, leave holes like any other.
Work on different partitions is taken to go on at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from logkeep.kafka.restore.facts.survey_task import LogSurvey
from logkeep.kafka.restore.facts.units import Offsets

MARKERS_PER_S = 59.0
"""Aborted transactions with nothing in them, one after the other."""
FILLER_BATCHES_PER_S = 353.0
FILLERS_PER_S = 4_000_000.0
"""Null records in batches of a million, for what lies before the first offset and inside of wide holes."""
SENT_BYTES_PER_S = 200e6
"""Batches as they are, acknowledged by all replicas."""
REENCODED_BYTES_PER_S = 60e6
"""Assumed."""
PROVEN_BYTES_PER_S = 300e6
"""Assumed."""
LONGEST_EXTRA_S = 600.0
"""What keeping offsets may cost before `auto` decides against it."""


@dataclass(frozen=True)
class OffsetsMode:
    """What `--offsets auto` came to, and the sentence that says why."""

    offsets: Offsets
    extra_s: float
    """What `preserve` costs more than `translate`."""
    reason: str


def preserve_s(log: LogSurvey) -> float:
    """What keeping the offsets of one log costs."""
    wide = min(log.holes, max(log.missing - log.holes, 0))
    fillers = log.start + max(log.missing - log.holes, 0)
    return log.holes / MARKERS_PER_S + wide / FILLER_BATCHES_PER_S + fillers / FILLERS_PER_S


def copy_s(log: LogSurvey, *, proof: bool) -> float:
    """What sending the records of one log costs, wherever they are put."""
    plain = log.bytes - log.reencoded_bytes
    proven = log.bytes / PROVEN_BYTES_PER_S if proof else 0.0
    return plain / SENT_BYTES_PER_S + log.reencoded_bytes / REENCODED_BYTES_PER_S + proven


def together_s(each: Sequence[float], at_once: int) -> float:
    """So many at a time: no less than the longest, no less than an equal share."""
    return max(max(each, default=0.0), sum(each) / max(at_once, 1))


def choose_offsets(logs: Sequence[LogSurvey], *, new_topics: bool, at_once: int, empty: bool = False) -> OffsetsMode:
    """What `auto` means for these logs. `empty`: some topics are as good as new, they exist and never held a record."""
    extra_s = together_s([preserve_s(log) for log in logs], at_once)
    if not new_topics:
        return OffsetsMode(Offsets.TRANSLATE, extra_s, _OLD_TOPICS)
    cost = _cost(logs, extra_s)
    if extra_s > LONGEST_EXTRA_S:
        limit, way = said(LONGEST_EXTRA_S), _AT_ANY_PRICE if _some_left_out(logs) else _OFFLINE
        return OffsetsMode(Offsets.TRANSLATE, extra_s, f"records get new offsets: {cost}, more than {limit}; {way}")
    topics = "the topics are new or empty" if empty else "the topics are new"
    return OffsetsMode(Offsets.PRESERVE, extra_s, f"records keep their offsets: {topics}, and {cost}")


_OLD_TOPICS = "records get new offsets: a target topic exists already, and only a new log can begin at any offset"

_OFFLINE = "to keep them, restore as files with --to-log-dirs, where holes cost nothing"
_AT_ANY_PRICE = "--offsets preserve keeps them all the same; without --by-record there are fewer holes"


def _some_left_out(logs: Sequence[LogSurvey]) -> bool:
    return any(log.left_out for log in logs)


def _cost(logs: Sequence[LogSurvey], extra_s: float) -> str:
    holes, leading = sum(log.holes for log in logs), sum(log.start for log in logs)
    if not holes and not leading:
        return "there is nothing to fill"
    parts = [f"up to {holes:,} {'hole' if holes == 1 else 'holes'}"] if holes else []
    parts += [f"{leading:,} offsets before the first ones"] if leading else []
    cost = f"filling {' and '.join(parts)} takes {bound(logs)} {said(extra_s)}"
    return f"{cost} (every run of records that --by-record leaves out is a hole)" if _some_left_out(logs) else cost


def bound(logs: Sequence[LogSurvey]) -> str:
    """How sure a time is: where records are left out it is not known which of a batch, so every second is assumed."""
    return "up to" if _some_left_out(logs) else "about"


def restore_s(logs: Sequence[LogSurvey], offsets: Offsets, *, proof: bool, at_once: int) -> float:
    """The whole restore: records, the proof, and holes where they are filled."""
    kept = offsets is Offsets.PRESERVE
    return together_s([copy_s(log, proof=proof) + (preserve_s(log) if kept else 0.0) for log in logs], at_once)


def said(seconds: float) -> str:
    """About how long, for people."""
    if seconds < 90:
        return f"{max(round(seconds), 1)} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
