"""The names under which an application's logs and snapshots are archived. Pure.

A data directory that is restored to an earlier state gives the same positions a second time. Its log is archived as a
branch then, under names of its own, because archived positions of one name have one meaning.
"""

from logkeep.model.segments import Collection, LogName


def log_of(name: str, history: int, partition: int, branch: int = 0) -> LogName:
    """The log of a partition since its application was restored for the `history`-th time.

    `branch` is the first backup since its data directory was restored to an earlier state; 0: it never was.
    """
    return LogName(Collection.TOPICS, f"{name}.log", _log_history(history, branch), partition)


def snapshots_of(name: str, history: int, partition: int, branch: int = 0) -> LogName:
    """Its snapshots: a segment `[S, S + 1)` holds the state with everything up to position S."""
    return LogName(Collection.SNAPSHOTS, f"{name}.state", _log_history(history, branch), partition)


def _log_history(history: int, branch: int) -> str:
    return f"h{history}.{branch}" if branch else f"h{history}"
