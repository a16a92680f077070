"""The loop of `kafka backup --format --follow`: one export after the other until the user stops it.

Each round asks the cluster for its topics, so that new topics and partitions join. A round that fails for a temporary
reason is reported and repeated; any other error ends the run.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from logkeep.errors import BackupFailed, Interrupted, Locked, LogkeepError, OldMessageFormat, StoreFull, TopicMissing
from logkeep.kafka.datasets.run import ExportDone
from logkeep.repository.follow import RetryPause, Stopping, pause_s


@dataclass(frozen=True)
class DatasetRound:
    number: int
    took_s: float
    again_in_s: float
    done: ExportDone | None = None
    """None if the round failed."""
    error: LogkeepError | None = None


@dataclass
class DatasetFollower:
    """One run. `report` gets every round as it ends."""

    round: Callable[[], ExportDone]
    stop: Stopping
    interval_s: float
    report: Callable[[DatasetRound], None]
    monotonic: Callable[[], float] = time.monotonic
    retry: RetryPause = field(default_factory=RetryPause)

    def run(self) -> None:
        """Make rounds until the user stops them. Raises what no retry cures, and the stop's own error for a second
        request."""
        number = failures = 0
        while True:
            number += 1
            began_s = self.monotonic()
            with self.stop.raising():
                done, error = self._round()
            failures = failures + 1 if error is not None else 0
            took_s = self.monotonic() - began_s
            again_in_s = pause_s(self.interval_s, took_s, failures, self.retry)
            self.report(DatasetRound(number, took_s, again_in_s, done, error))
            self.stop.wait(again_in_s)
            if self.stop.requested:
                return

    def _round(self) -> tuple[ExportDone | None, LogkeepError | None]:
        try:
            return self.round(), None
        except LogkeepError as error:
            if isinstance(error, Interrupted) or not retry_cures(error):
                raise
            return None, error


def retry_cures(error: LogkeepError) -> bool:
    """Whether the next round may succeed without any action of the user."""
    if isinstance(error, OldMessageFormat):
        return False
    return error.retry_helps or isinstance(error, Locked | StoreFull | BackupFailed | TopicMissing)
