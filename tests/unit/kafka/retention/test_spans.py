"""Which archived rows are judged: those below the newest log start, in every history of a partition."""

from typing import cast

from logkeep.kafka.retention.facts import _spans
from logkeep.model.ranges import Range
from logkeep.repository.backups.manifest import LogCut, Manifest
from tests.unit.kafka.retention.test_topic_verdicts import AGAIN, LOG, log_of


class _Cut:
    """As much of a manifest as is asked for."""

    def __init__(self, *cut: LogCut) -> None:
        self.cut = cut


def test_every_history_of_a_partition_is_judged_below_its_newest_log_start() -> None:
    newest = {log_of(history="-1"): Range(60, 90), log_of(partition=1): Range(0, 9)}
    other = log_of(AGAIN)
    older = [
        _Cut(LogCut(LOG, 20, 50), LogCut(log_of(partition=1), 0, 5), LogCut(other, 0, 9)),
        _Cut(LogCut(LOG, 10, 70), LogCut(log_of(history="-1"), 30, 80)),
    ]
    assert _spans(newest, cast("list[Manifest]", older)) == {LOG: Range(10, 60), log_of(history="-1"): Range(30, 60)}
