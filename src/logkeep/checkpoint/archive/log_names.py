"""The names under which an application's logs and snapshots are archived. Pure."""

from logkeep.model.segments import Collection, LogName


def log_of(name: str, history: int, partition: int) -> LogName:
    """The log of a partition since its application was restored for the `history`-th time."""
    return LogName(Collection.TOPICS, f"{name}.log", f"h{history}", partition)


def snapshots_of(name: str, history: int, partition: int) -> LogName:
    """Its snapshots: a segment `[S, S + 1)` holds the state with everything up to position S."""
    return LogName(Collection.SNAPSHOTS, f"{name}.state", f"h{history}", partition)
