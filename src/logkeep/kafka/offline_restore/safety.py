"""Whether files may be put into these directories now. Pure, by what the target's own disks tell.

Its metadata log says how the topics were made: a topic that deletes old records would begin to do so seconds after the
start, and a log that is put on one of several replicas may be cut to nothing by another that is empty.
"""

from collections.abc import Iterable, Mapping, Sequence

from logkeep.errors import TargetUnsafe
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.disks.metadata_image import ClusterImage
from logkeep.kafka.offline_restore.instructions import HELD_OFF
from logkeep.kafka.offline_restore.values import DirectoryState, OfflineRestoreLog, OfflineRestorePlan, OfflineWish
from logkeep.model.findings import Finding, Severity

_MOST_NAMED = 5


def check(foreseen: OfflineRestorePlan, wish: OfflineWish) -> None:
    """Raises TargetUnsafe, before anything was changed."""
    if foreseen.elsewhere and not (wish.here_only and foreseen.logs):
        raise TargetUnsafe(
            f"no directory is here for {_named(foreseen.elsewhere)}",
            subject=", ".join(map(str, wish.roots)),
            remedy="make the topics first, let the broker make their directories, and stop it:\n\n"
            + foreseen.procedure,
        )
    full = [log.name for log in foreseen.logs if log.standing is DirectoryState.RECORDS]
    if full and not wish.replace:
        raise TargetUnsafe(
            f"{_named(full)} hold records already, which would be lost",
            subject=", ".join(map(str, wish.roots)),
            remedy="delete the topics and make them again, or say that these records may be replaced",
        )


def check_topics(image: ClusterImage | None, logs: Iterable[OfflineRestoreLog]) -> None:
    """Raises TargetUnsafe for a directory that the broker would set aside: its topic is gone, or was made again."""
    for log in logs if image is not None else ():
        known = image.topics.get(log.topic) if image is not None else None
        if known is None or known.hex != log.topic_id:
            raise TargetUnsafe(
                "the cluster has no topic of this name"
                if known is None
                else "the cluster's topic of this name is another",
                subject=str(log.directory),
                remedy="start the broker once more, make the topic if it is not there, and stop it",
            )


def check_starts(starts: Mapping[TopicPartition, int], logs: Iterable[OfflineRestoreLog]) -> None:
    """Raises TargetUnsafe where the broker remembers a log start behind the one that is restored.

    It would hide what stands before it, or delete a log that ends before it. `starts` are those that it remembers.
    """
    for log in logs:
        known = starts.get(TopicPartition(log.topic, log.partition), 0)
        if known > log.start:
            raise TargetUnsafe(
                f"the broker remembers that this log begins at {known}, and what is restored begins at {log.start}",
                subject=str(log.directory),
                remedy="delete the topic and make it again: only then does the broker forget it",
            )


def check_configs(image: ClusterImage | None, logs: Iterable[OfflineRestoreLog]) -> None:
    """Raises TargetUnsafe when a topic would delete or compact what is restored."""
    configs = image.configs if image is not None else {}
    for topic in sorted({log.topic for log in logs}) if image is not None else ():
        wrong = removing(configs.get(topic, {}))
        if wrong:
            held = ",".join(f"{name}={value}" for name, value in HELD_OFF.items())
            raise TargetUnsafe(
                f"the topic has {', '.join(wrong)}: records would be removed as soon as the broker starts",
                subject=topic,
                remedy="start the broker once more, run kafka-configs.sh --alter --entity-type topics --entity-name "
                f"{topic} --add-config {held}, and stop it",
            )


def removing(configs: Mapping[str, str]) -> list[str]:
    """Which configs of a topic remove records."""
    found = [] if configs.get("retention.ms") == "-1" else [f"retention.ms={configs.get('retention.ms', 'unset')}"]
    found += [f"{n}={v}" for n, v in configs.items() if n == "retention.bytes" and v != "-1"]
    found += [f"{n}={v}" for n, v in configs.items() if n == "cleanup.policy" and v != "delete"]
    return found


def about_replicas(
    image: ClusterImage | None, logs: Sequence[OfflineRestoreLog], nodes: Sequence[int]
) -> list[Finding]:
    """Logs that other brokers keep as well."""
    if image is None:
        what = "the directories hold no metadata log: whether retention is off, and who keeps replicas, is not known"
        return [_warning("metadata-missing", "target", what, "see the procedure")]
    shared = [log.name for log in logs if set(image.replicas_of(log.topic, log.partition)) - set(nodes)]
    if not shared:
        return []
    what = f"{_named(shared)} have replicas on other brokers: an empty one may become leader and cut the log to nothing"
    remedy = "run the same restore on all of their brokers before any of them is started"
    return [_warning("other-replicas", "target", what, remedy)]


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{', '.join(names[:_MOST_NAMED])}{more}"


def _warning(code: str, where: str, what: str, remedy: str) -> Finding:
    return Finding(code=code, severity=Severity.WARNING, where=where, what=what, remedy=remedy)
