"""What Zeebe's answers about a backup mean. Pure.

Zeebe says 202 as soon as a partition has created the checkpoint. Afterwards:

- 404 and INCOMPLETE mean *not yet*. If the store was down at that moment, 404 stays forever, and the id is lost: Zeebe
  never accepts it again.
- COMPLETED may be about a backup of an abandoned history: after a restore Zeebe takes an id that its store has already
  for done. Such a backup began before it was asked for, or ends after what the partition has processed.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from logkeep.checkpoint.zeebe.take.management import BackupStatus, LivePartition
from logkeep.model.ids import BackupId, next_id

_LATEST = re.compile(r"\bid[ =]+'?([0-9]{1,18})\b")
_FRACTION = re.compile(r"(\.[0-9]{6})[0-9]+")
_CLOCKS_DIFFER = timedelta(seconds=2)
"""Brokers of one cluster may have slightly different clocks."""


class TakeStage(StrEnum):
    NOT_YET = "not yet there"
    IN_PROGRESS = "in progress"
    COMPLETED = "completed"
    FAILED = "failed"


@dataclass(frozen=True)
class Seen:
    """One answer, judged."""

    stage: TakeStage
    done: int = 0
    """Partitions that are completed."""
    partitions: int = 0
    reason: str = ""


@dataclass(frozen=True)
class BeforeRequest:
    """What was known before a backup was asked for."""

    zeebe_clock: datetime | None
    """By the clock of the broker that answers."""


def judge(status: BackupStatus | None) -> Seen:
    if status is None:
        return Seen(TakeStage.NOT_YET)
    done = sum(each.state == "COMPLETED" for each in status.details)
    if status.state == "COMPLETED":
        return Seen(TakeStage.COMPLETED, done, len(status.details))
    if status.state in {"FAILED", "DELETED"}:
        return Seen(TakeStage.FAILED, done, len(status.details), _why_failed(status))
    begun = any(each.state in {"IN_PROGRESS", "COMPLETED"} for each in status.details)
    stage = TakeStage.IN_PROGRESS if begun else TakeStage.NOT_YET
    return Seen(stage, done, len(status.details), f"Zeebe says {status.state}")


def _why_failed(status: BackupStatus) -> str:
    of_partitions = [
        f"partition {each.partition_id}: {each.failure_reason or each.state}"
        for each in status.details
        if each.state not in {"COMPLETED", "IN_PROGRESS"}
    ]
    return "; ".join(of_partitions) or status.failure_reason or f"Zeebe says {status.state}"


def without_result(number: int, seen: Seen, waited_s: float, trouble: str) -> str:
    """What to report of a backup that has not ended in time. `trouble`: the last error of a question."""
    last = f"; the last question ended with: {trouble}" if trouble else ""
    if seen.stage is TakeStage.NOT_YET:
        return (
            f"id {number} is lost: Zeebe accepted it, and {waited_s:.0f} s later its store has nothing of it. "
            f"Zeebe will not accept this id again{last}"
        )
    there = f"{seen.done} of {seen.partitions} partitions are completed" if seen.partitions else seen.stage.value
    return f"backup {number} has not ended after {waited_s:.0f} s: {there}{last}"


def next_number(now: datetime, known: Iterable[int]) -> BackupId:
    """An id larger than all that are known."""
    return next_id(now, max(known, default=0))


def latest_in(message: str) -> int | None:
    """The largest id in Zeebe's refusal, which names the latest checkpoint; None if it names none."""
    found = [int(text) for text in _LATEST.findall(message)]
    return max(found, default=None)


def clock_of(partitions: Mapping[int, LivePartition]) -> datetime | None:
    """The latest time that the partitions of a broker report."""
    texts = (each.clock.instant for each in partitions.values() if each.clock is not None)
    return max((moment for text in texts if (moment := moment_of(text)) is not None), default=None)


def moment_of(text: str | None) -> datetime | None:
    """A time of Zeebe, which may have nine decimals; None if it is not a time."""
    try:
        moment = datetime.fromisoformat(_FRACTION.sub(r"\1", text or ""))
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def other_history(status: BackupStatus, before: BeforeRequest, after: Mapping[int, LivePartition]) -> tuple[str, ...]:
    """Why a completed backup cannot be the one that was asked for; empty if nothing speaks against it."""
    found = list[str]()
    for each in status.details:
        created = moment_of(each.created_at)
        if before.zeebe_clock is not None and created is not None and created < before.zeebe_clock - _CLOCKS_DIFFER:
            found.append(f"partition {each.partition_id} was copied at {created:%FT%TZ}, before it was asked for")
        live = after.get(each.partition_id)
        processed = live.processed_position if live is not None else None
        if processed is not None and each.checkpoint_position is not None and each.checkpoint_position > processed:
            found.append(
                f"partition {each.partition_id} has its checkpoint at {each.checkpoint_position}, "
                f"and the running partition has processed {processed}"
            )
    return tuple(found)
