"""Which trouble of a run that follows a cluster or an ensemble passes by itself. Pure."""

from logkeep.errors import BackupFailed, Locked, LogkeepError, OldMessageFormat, StoreFull, TopicMissing


def retry_cures(error: LogkeepError) -> bool:
    """Whether the next round may succeed without anybody doing anything about this one.

    A server or a store that does not answer, somebody else's lease, a full disk that is being freed, a task that
    failed, a topic that went away between two questions: yes. A password, a certificate, a right, another cluster
    under this name, damage, a topic in an old format: no.
    """
    if isinstance(error, OldMessageFormat):
        return False
    return error.retry_helps or isinstance(error, Locked | StoreFull | BackupFailed | TopicMissing)
