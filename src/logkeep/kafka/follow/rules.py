"""What a run that follows a cluster decides between its rounds. Pure."""

from logkeep.errors import BackupFailed, Locked, LogkeepError, OldMessageFormat, StoreFull, TopicMissing

LONGEST_PAUSE_S = 60.0
MERGE_EVERY = 32
"""Committed rounds between two looks for small neighbours."""
MERGE_LEAST = 8
"""Fewer small neighbours than this are left for later: every merge commits, and rewrites rows of old backups."""


def retry_cures(error: LogkeepError) -> bool:
    """Whether the next round may succeed without anybody doing anything about this one.

    A broker or a store that does not answer, somebody else's lease, a full disk that is being freed, a task that
    failed, a topic that went away between two questions: yes. A password, a certificate, a right, another cluster
    under this name, damage, a topic in an old format: no.
    """
    if isinstance(error, OldMessageFormat):
        return False
    return error.retry_helps or isinstance(error, Locked | StoreFull | BackupFailed | TopicMissing)


def pause_s(interval_s: float, took_s: float, failures: int) -> float:
    """How long to wait: rounds begin an interval apart; after failures in a row 1, 2, 4 … seconds, at most a minute."""
    if failures:
        return min(2.0 ** min(failures - 1, 16), LONGEST_PAUSE_S)
    return max(interval_s - took_s, 0.0)


def merging_due(committed: int) -> bool:
    """Whether so many rounds have been committed since the last look for small neighbours that it is time again."""
    return committed >= MERGE_EVERY


def next_look_s(interval_s: float, took_s: float) -> int:
    """After so long without another look a run that follows has stopped, or does not get on."""
    return max(600, int(10 * max(interval_s, took_s)))
