"""The expected duration of a restore, and the choice between keeping and translating offsets. Pure.

The rates of markers, fillers and plain batches were measured with one partition on one real broker on two cores; those
of re-encoding and of the proof are assumed. Each hole costs a transaction, and its marker must be in the log before
anything else is sent: therefore holes, not bytes, decide about `preserve`. Records that are left out because of their
time leave holes too. Partitions are assumed to be restored in parallel.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from logkeep.kafka.restore.facts.survey_task import LogSurvey
from logkeep.kafka.restore.facts.units import Offsets
from logkeep.model.plurals import plural

MARKERS_PER_S = 59.0
"""Empty aborted transactions, one after the other."""
FILLER_BATCHES_PER_S = 353.0
FILLERS_PER_S = 4_000_000.0
"""Null records in batches of a million, before the first offset and inside wide holes."""
SENT_BYTES_PER_S = 200e6
"""Unchanged batches, acknowledged by all replicas."""
REENCODED_BYTES_PER_S = 60e6
"""Assumed."""
PROVEN_BYTES_PER_S = 300e6
"""Assumed."""
LONGEST_EXTRA_S = 600.0
"""With `auto`, offsets are kept if that takes no longer than this."""


@dataclass(frozen=True)
class OffsetsMode:
    """The result of `--offsets auto`, and a sentence with the reason."""

    offsets: Offsets
    extra_s: float
    """How much longer `preserve` takes than `translate`."""
    reason: str


def preserve_s(log: LogSurvey) -> float:
    """The time to keep the offsets of one log."""
    wide = min(log.holes, max(log.missing - log.holes, 0))
    fillers = log.start + max(log.missing - log.holes, 0)
    return log.holes / MARKERS_PER_S + wide / FILLER_BATCHES_PER_S + fillers / FILLERS_PER_S


def copy_s(log: LogSurvey, *, proof: bool) -> float:
    """The time to send the records of one log, in either mode."""
    plain = log.bytes - log.reencoded_bytes
    proven = log.bytes / PROVEN_BYTES_PER_S if proof else 0.0
    return plain / SENT_BYTES_PER_S + log.reencoded_bytes / REENCODED_BYTES_PER_S + proven


def together_s(each: Sequence[float], at_once: int) -> float:
    """The time of `at_once` parallel units: at least the longest, and at least an equal share."""
    return max(max(each, default=0.0), sum(each) / max(at_once, 1))


def choose_offsets(logs: Sequence[LogSurvey], *, new_topics: bool, at_once: int, empty: bool = False) -> OffsetsMode:
    """The result of `auto` for these logs. `empty`: some topics exist and never held a record."""
    extra_s = together_s([preserve_s(log) for log in logs], at_once)
    if not new_topics:
        return OffsetsMode(Offsets.TRANSLATE, extra_s, _OLD_TOPICS)
    cost = _cost(logs, extra_s)
    if extra_s > LONGEST_EXTRA_S:
        limit, hint = duration_text(LONGEST_EXTRA_S), _AT_ANY_PRICE if _some_left_out(logs) else _OFFLINE
        return OffsetsMode(Offsets.TRANSLATE, extra_s, f"records get new offsets: {cost}, more than {limit}; {hint}")
    topics = "the topics are new or empty" if empty else "the topics are new"
    return OffsetsMode(Offsets.PRESERVE, extra_s, f"records keep their offsets: {topics}, and {cost}")


_OLD_TOPICS = "records get new offsets: a target topic exists already, and only a new log can start at any offset"

_OFFLINE = "to keep them, restore as files with --to-log-dirs, where holes cost nothing"
_AT_ANY_PRICE = "--offsets preserve keeps them nevertheless; without --by-record there are fewer holes"


def _some_left_out(logs: Sequence[LogSurvey]) -> bool:
    return any(log.left_out for log in logs)


def _cost(logs: Sequence[LogSurvey], extra_s: float) -> str:
    holes, leading = sum(log.holes for log in logs), sum(log.start for log in logs)
    if not holes and not leading:
        return "there are no holes to fill"
    parts = [f"up to {plural(holes, 'hole')}"] if holes else []
    parts += [f"{plural(leading, 'offset')} before the first ones"] if leading else []
    cost = f"filling {' and '.join(parts)} takes {bound_word(logs)} {duration_text(extra_s)}"
    return f"{cost} (each run of records that --by-record leaves out is a hole)" if _some_left_out(logs) else cost


def bound_word(logs: Sequence[LogSurvey]) -> str:
    """How exact a time is: which records of a batch are left out is unknown, so every second one is assumed."""
    return "up to" if _some_left_out(logs) else "about"


def restore_s(logs: Sequence[LogSurvey], offsets: Offsets, *, proof: bool, at_once: int) -> float:
    """The whole restore: records, the proof, and holes if they are filled."""
    kept = offsets is Offsets.PRESERVE
    return together_s([copy_s(log, proof=proof) + (preserve_s(log) if kept else 0.0) for log in logs], at_once)


def duration_text(seconds: float) -> str:
    """A rounded duration for the user."""
    if seconds < 90:
        return f"{max(round(seconds), 1)} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
