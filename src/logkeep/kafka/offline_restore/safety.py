"""Checks before files are written to the log directories. Pure: decided from the target's own disks.

The metadata log on the disks has the topics' configs and replicas. A topic with retention would delete old records
seconds after the broker's start. A log that is restored on one of several replicas may be truncated by an empty one.
"""

from collections.abc import Iterable, Mapping, Sequence

from logkeep.errors import TargetUnsafe
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.disks.metadata_image import ClusterImage
from logkeep.kafka.offline_restore.instructions import HELD_OFF
from logkeep.kafka.offline_restore.values import (
    DirectoryState,
    OfflineRestoreLog,
    OfflineRestoreOptions,
    OfflineRestorePlan,
)
from logkeep.model.findings import Finding, warning
from logkeep.model.shell_words import shell_word

_MOST_NAMED = 5


def check_directories(plan: OfflineRestorePlan, options: OfflineRestoreOptions) -> None:
    """Raises TargetUnsafe before anything is changed."""
    if plan.elsewhere and not (options.here_only and plan.logs):
        raise TargetUnsafe(
            f"there is no directory for {_join_names(plan.elsewhere)}",
            subject=", ".join(map(str, options.roots)),
            remedy="create the topics first, let the broker create their directories, and stop it; the same command "
            "with --dry-run prints every step",
        )
    full = [log.name for log in plan.logs if log.state is DirectoryState.RECORDS]
    if full and not options.replace:
        raise TargetUnsafe(
            f"{_join_names(full)} already hold records, which would be lost",
            subject=", ".join(map(str, options.roots)),
            remedy="delete the topics and create them again, or use --replace-records",
        )


def check_topics(image: ClusterImage | None, logs: Iterable[OfflineRestoreLog]) -> None:
    """Raises TargetUnsafe for a directory that the broker would discard: its topic was deleted or recreated."""
    for log in logs if image is not None else ():
        known = image.topics.get(log.topic) if image is not None else None
        if known is None or known.hex != log.topic_id:
            raise TargetUnsafe(
                "the cluster has no topic of this name"
                if known is None
                else "the cluster's topic of this name has another id",
                subject=str(log.directory),
                remedy="start the broker again, create the topic if it does not exist, and stop the broker",
            )


def check_starts(starts: Mapping[TopicPartition, int], logs: Iterable[OfflineRestoreLog]) -> None:
    """Raises TargetUnsafe where the broker has stored a log start after the restored one.

    It would hide records before its log start, or delete a log that ends before it. `starts` are the stored ones.
    """
    for log in logs:
        known = starts.get(TopicPartition(log.topic, log.partition), 0)
        if known > log.start:
            raise TargetUnsafe(
                f"the broker has stored the log start {known}, and the restored log starts at {log.start}",
                subject=str(log.directory),
                remedy="delete the topic and create it again: that resets the stored log start",
            )


def check_configs(image: ClusterImage | None, logs: Iterable[OfflineRestoreLog]) -> None:
    """Raises TargetUnsafe when a topic would delete or compact restored records."""
    configs = image.configs if image is not None else {}
    for topic in sorted({log.topic for log in logs}) if image is not None else ():
        wrong = removing_configs(configs.get(topic, {}))
        if wrong:
            held = ",".join(f"{name}={value}" for name, value in HELD_OFF.items())
            raise TargetUnsafe(
                f"the topic has {', '.join(wrong)}: records would be removed as soon as the broker starts",
                subject=topic,
                remedy="start the broker again, run kafka-configs.sh --alter --entity-type topics --entity-name "
                f"{shell_word(topic)} --add-config {held}, and stop it",
            )


def removing_configs(configs: Mapping[str, str]) -> list[str]:
    """The configs of a topic that remove records."""
    found = [] if configs.get("retention.ms") == "-1" else [f"retention.ms={configs.get('retention.ms', 'unset')}"]
    found += [f"{n}={v}" for n, v in configs.items() if n == "retention.bytes" and v != "-1"]
    found += [f"{n}={v}" for n, v in configs.items() if n == "cleanup.policy" and v != "delete"]
    return found


def about_replicas(
    image: ClusterImage | None, logs: Sequence[OfflineRestoreLog], nodes: Sequence[int]
) -> list[Finding]:
    """Findings about logs with replicas on other brokers."""
    if image is None:
        what = "the directories hold no metadata log: retention and replicas of the topics are unknown"
        return [warning("metadata-missing", "target", what, "see the procedure")]
    shared = [log.name for log in logs if set(image.replicas_of(log.topic, log.partition)) - set(nodes)]
    if not shared:
        return []
    what = f"{_join_names(shared)} have replicas on other brokers: an empty one may become leader and truncate the log"
    remedy = "run the same restore on all of their brokers before you start any of them"
    return [warning("other-replicas", "target", what, remedy)]


def _join_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{', '.join(names[:_MOST_NAMED])}{more}"
