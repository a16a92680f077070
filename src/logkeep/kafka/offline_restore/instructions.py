"""The procedure of an offline restore as text: all steps with the commands for this cluster. Pure.

There are three procedures. One broker, or topics with one replica: stop, restore, start. A seed broker: topics are
created on one broker, only this one is stopped, and Kafka copies the logs to the others by reassignment. Every replica:
all brokers are stopped, and the same restore runs on each; it writes the same bytes everywhere.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from logkeep.kafka.offline_restore.values import OfflineRestoreOptions, ProcedureKind
from logkeep.model.shell_words import shell_line, shell_word
from logkeep.model.time import rfc3339

HELD_OFF: Mapping[str, str] = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
"""Configs until the restore is complete: no retention, no compaction."""
_MOST_EXPECTED = 20
_SERVER = '--bootstrap-server "$BROKERS"'


@dataclass(frozen=True)
class TopicToCreate:
    """A topic to create in the target."""

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]
    """The archived configs."""
    bounds: tuple[tuple[int, int, int], ...] = ()
    """Partition, log start and log end after the restore, without markers of open transactions."""


@dataclass(frozen=True)
class OfflineTarget:
    """The backup and the target of the procedure."""

    backup: int
    source: str
    roots: tuple[str, ...]
    node: int
    brokers: tuple[int, ...]
    """All known brokers of the cluster."""
    restore_words: tuple[str, ...] = ()
    """Options of the restore command, so that the printed command restores the same."""
    group_words: tuple[str, ...] = ()
    """The same for the command that restores groups."""


def usual_way(topics: Sequence[TopicToCreate]) -> ProcedureKind:
    return ProcedureKind.SEED if any(t.replication_factor > 1 for t in topics) else ProcedureKind.SINGLE


def procedure(topics: Sequence[TopicToCreate], target: OfflineTarget, way: ProcedureKind) -> str:
    """All steps, numbered. The user only has to set `BROKERS`."""
    steps = [
        _create(topics, target, way),
        _stop(target, way),
        _restore(target, way),
        _start(way),
        _check(topics),
        *([_reassign(topics, target)] if way is ProcedureKind.SEED else []),
        _configs(topics),
        _groups(target),
    ]
    numbered = [f"{number}. {text}" for number, text in enumerate(steps, 1)]
    return "\n\n".join([_head(target, way), *numbered]) + "\n"


def _head(target: OfflineTarget, way: ProcedureKind) -> str:
    targets = {
        ProcedureKind.SINGLE: f"into the files of broker {target.node}",
        ProcedureKind.SEED: f"into the files of broker {target.node} alone, copied from there by Kafka itself",
        ProcedureKind.EVERY: "into the files of every broker",
    }
    return f"Restore of backup {target.backup} of {target.source} {targets[way]}."


def _create(topics: Sequence[TopicToCreate], target: OfflineTarget, way: ProcedureKind) -> str:
    lines = [create_command(t, target, way) for t in topics]
    return _step("Create the topics, with nothing that removes records:", lines)


def create_command(topic: TopicToCreate, target: OfflineTarget, way: ProcedureKind) -> str:
    if way is ProcedureKind.SEED:
        where = f"--replica-assignment {','.join([str(target.node)] * topic.partitions)}"
    else:
        where = f"--partitions {topic.partitions} --replication-factor {topic.replication_factor}"
    held = " ".join(f"--config {name}={value}" for name, value in HELD_OFF.items())
    return f"kafka-topics.sh {_SERVER} --create --topic {shell_word(topic.name)} {where} {held}"


def _stop(target: OfflineTarget, way: ProcedureKind) -> str:
    if way is ProcedureKind.EVERY:
        return _step("Stop every broker:", ["kafka-server-stop.sh"])
    return _step(f"Stop broker {target.node}; the others stay as they are:", ["kafka-server-stop.sh"])


def _restore(target: OfflineTarget, way: ProcedureKind) -> str:
    here = ("--here-only",) if way is ProcedureKind.EVERY and "--here-only" not in target.restore_words else ()
    dirs = ("--to-log-dirs", ",".join(target.roots))
    words = (str(target.backup), "--source", target.source, *dirs, *target.restore_words, *here)
    line = shell_line("logkeep", "kafka", "restore", *words)
    if way is ProcedureKind.EVERY:
        what = "Run this on every broker, each with its own log.dirs, with the same backup and the same options:"
        return _step(what, [line])
    return _step("Write the files, as the user that the broker runs as:", [line])


def _start(way: ProcedureKind) -> str:
    every = way is ProcedureKind.EVERY
    what = "Start all brokers. They rebuild their" if every else "Start the broker. It rebuilds its"
    text = "one ERROR line for each segment, about a missing index file, is normal:"
    return _step(f"{what} indexes: {text}", ["kafka-server-start.sh -daemon server.properties"])


def _check(topics: Sequence[TopicToCreate]) -> str:
    lines = [
        f"kafka-get-offsets.sh {_SERVER} --topic {shell_word(t.name)} --time {when}"
        for t in topics
        for when in ("earliest", "latest")
    ]
    expected = list(_expected(topics))
    shown = [*expected[:_MOST_EXPECTED], *(["…"] if len(expected) > _MOST_EXPECTED else [])]
    ends = "\n".join(f"   {line}" for line in shown)
    return _step("Check where the logs begin and end:", lines) + f"\n   which must be\n{ends}"


def _expected(topics: Sequence[TopicToCreate]) -> Iterator[str]:
    for topic in topics:
        for partition, start, end in topic.bounds:
            yield f"{shell_word(topic.name)}:{partition} from {start} to {end}"


def _reassign(topics: Sequence[TopicToCreate], target: OfflineTarget) -> str:
    wide = [t for t in topics if t.replication_factor > 1]
    most = max((t.replication_factor for t in wide), default=1)
    if len(target.brokers) < most:
        return (
            f"Spread the partitions over the brokers with kafka-reassign-partitions.sh: {most} replicas are wanted, "
            f"and only brokers {', '.join(map(str, target.brokers))} are known here; name all of them with --brokers."
        )
    lines = [
        f"cat > reassignment.json <<'END'\n{reassignment(wide, target)}\nEND",
        f"kafka-reassign-partitions.sh {_SERVER} --reassignment-json-file reassignment.json --execute",
        f"kafka-reassign-partitions.sh {_SERVER} --reassignment-json-file reassignment.json --verify",
    ]
    return _step("Let Kafka copy the logs to the other brokers, and wait until it reports all as complete:", lines)


def reassignment(topics: Sequence[TopicToCreate], target: OfflineTarget) -> str:
    """The file for kafka-reassign-partitions: replicas and leaders rotate over all brokers."""
    brokers, rows, turn = target.brokers, [], 0
    for topic in topics:
        for partition in range(topic.partitions):
            replicas = [brokers[(turn + n) % len(brokers)] for n in range(topic.replication_factor)]
            rows.append({"topic": topic.name, "partition": partition, "replicas": replicas})
            turn += 1
    return json.dumps({"version": 1, "partitions": rows}, separators=(",", ":"))


def _configs(topics: Sequence[TopicToCreate]) -> str:
    text = (
        "When the offsets are right, set the topics' own configs. From then on retention and compaction work again, "
        "and records that are older than the retention are deleted:"
    )
    return _step(text, [command for t in topics for command in config_commands(t)])


def _groups(target: OfflineTarget) -> str:
    words = ("--backup", str(target.backup), "--source", target.source, *target.group_words)
    line = f'{shell_line("logkeep", "kafka", "groups", "restore", *words)} --bootstrap-servers "$BROKERS"'
    text = "Set the groups. The logs have the offsets of the source, so every group continues where it was:"
    return _step(text, [line])


def config_commands(topic: TopicToCreate) -> list[str]:
    """Commands that change the configs of the restore to the archived ones."""
    entity = f"kafka-configs.sh {_SERVER} --alter --entity-type topics --entity-name {shell_word(topic.name)}"
    unset = [name for name in HELD_OFF if name not in topic.configs]
    found = [f"{entity} --delete-config {','.join(unset)}"] if unset else []
    if topic.configs:
        pairs = ",".join(f"{name}={_value(value)}" for name, value in sorted(topic.configs.items()))
        found.insert(0, f"{entity} --add-config {shell_word(pairs)}")
    return found


def _value(value: str) -> str:
    """A config value for kafka-configs.sh, which needs brackets around lists."""
    return f"[{value}]" if "," in value else value


def _step(what: str, lines: Sequence[str]) -> str:
    return "\n".join([what, "", *(f"       {line}" for each in lines for line in each.splitlines())])


def restore_words(options: OfflineRestoreOptions) -> tuple[str, ...]:
    """Options of the restore command: the same logs, names and ends."""
    selection = options.selection
    until = () if options.until_ms is None else (_moment(options.until_ms),)
    return (
        *group_words(options),
        *_each("--partitions", selection.partitions),
        *_each("--until-time", until),
        *_each("--until-offset", selection.until_offsets),
        *(["--replace-records"] if options.replace else []),
        *(["--here-only"] if options.here_only else []),
    )


def group_words(options: OfflineRestoreOptions) -> tuple[str, ...]:
    """Options of the groups command: topics and names; it reads the ends from the logs."""
    selection = options.selection
    return (
        *_each("-r", (options.repo,) if options.repo else ()),
        *_each("--topics", selection.include),
        *_each("--exclude", selection.exclude),
        *_each("--rename", selection.renames),
    )


def _each(flag: str, values: Sequence[str]) -> list[str]:
    return [word for value in values for word in (flag, value)]


def _moment(time_ms: int) -> str:
    """A time with milliseconds, in the format of --until-time."""
    return rfc3339(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=time_ms))
