"""The procedure for a cluster, word for word, and its commands one by one."""

import json
import shlex
from dataclasses import replace

from logkeep.kafka.offline_restore.instructions import (
    OfflineTarget,
    TopicToCreate,
    config_commands,
    create_command,
    group_words,
    procedure,
    reassignment,
    restore_words,
    usual_way,
)
from logkeep.kafka.offline_restore.values import OfflineRestoreOptions, ProcedureKind
from logkeep.kafka.restore.plan.selection import RestoreSelection
from logkeep.model.ids import BackupId

ORDERS = TopicToCreate("orders", 2, 1, {}, ((0, 0, 1300), (1, 17, 900)))
USERS = TopicToCreate("users", 1, 3, {"cleanup.policy": "compact,delete", "retention.ms": "-1"}, ((0, 0, 5),))
TARGET = OfflineTarget(20261116050000, "prod", ("/var/lib/kafka/a", "/var/lib/kafka/b"), 1, (1, 2, 3))

SINGLE = """\
Restore of backup 20261116050000 of prod into the files of broker 1.

1. Create the topics, with nothing that removes records:

       kafka-topics.sh --bootstrap-server "$BROKERS" --create --topic orders --partitions 2 --replication-factor 1 \
--config cleanup.policy=delete --config retention.ms=-1 --config retention.bytes=-1

2. Stop broker 1; the others stay as they are:

       kafka-server-stop.sh

3. Write the files, as the user that the broker runs as:

       logkeep kafka restore 20261116050000 --source prod --to-log-dirs /var/lib/kafka/a,/var/lib/kafka/b

4. Start the broker. It rebuilds its indexes: one ERROR line for each segment, about a missing index file, is normal:

       kafka-server-start.sh -daemon server.properties

5. Check where the logs begin and end:

       kafka-get-offsets.sh --bootstrap-server "$BROKERS" --topic orders --time earliest
       kafka-get-offsets.sh --bootstrap-server "$BROKERS" --topic orders --time latest
   which must be
   orders:0 from 0 to 1300
   orders:1 from 17 to 900

6. When the offsets are right, set the topics' own configs. From then on retention and compaction work again, \
and records that are older than the retention are deleted:

       kafka-configs.sh --bootstrap-server "$BROKERS" --alter --entity-type topics --entity-name orders \
--delete-config cleanup.policy,retention.ms,retention.bytes

7. Set the groups. The logs have the offsets of the source, so every group continues where it was:

       logkeep kafka groups restore --backup 20261116050000 --source prod --bootstrap-servers "$BROKERS"
"""


def test_one_broker_word_for_word() -> None:
    assert procedure([ORDERS], TARGET, ProcedureKind.SINGLE) == SINGLE


def test_the_commands_ask_for_what_was_asked_for() -> None:
    """A line that is copied from the procedure must not bring back another thing, or under another name."""
    choice = RestoreSelection(("orders", "u.*"), ("users-old",), ("s/^/x y-/",), ("orders:0,1",), ("orders:0=17",))
    wish = OfflineRestoreOptions(
        backup=BackupId(20261116050000), roots=(), selection=choice, until_ms=1_700_000_000_049,
        repo="s3://b/it's mine", replace=True, here_only=True,
    )  # fmt: skip
    told = procedure(
        [ORDERS], replace(TARGET, restore_words=restore_words(wish), group_words=group_words(wish)), ProcedureKind.EVERY
    )
    typed = [shlex.split(line) for line in told.splitlines() if line.strip().startswith("logkeep")]
    repo = ["-r", "s3://b/it's mine"]
    topics = ["--topics", "orders", "--topics", "u.*", "--exclude", "users-old", "--rename", "s/^/x y-/"]
    ends = ["--partitions", "orders:0,1", "--until-time", "2023-11-14T22:13:20.049Z", "--until-offset", "orders:0=17"]
    where = ["20261116050000", "--source", "prod", "--to-log-dirs", "/var/lib/kafka/a,/var/lib/kafka/b"]
    assert typed == [
        ["logkeep", "kafka", "restore", *where, *repo, *topics, *ends, "--replace-records", "--here-only"],
        ["logkeep", "kafka", "groups", "restore", "--backup", *where[:3], *repo, *topics,
         "--bootstrap-servers", "$BROKERS"],
    ]  # fmt: skip


def test_replicas_decide_the_usual_way() -> None:
    assert usual_way([ORDERS]) is ProcedureKind.SINGLE
    assert usual_way([ORDERS, USERS]) is ProcedureKind.SEED


def test_a_seed_broker_gets_everything_and_kafka_spreads_it() -> None:
    assert "--replica-assignment 1,1 --config" in create_command(ORDERS, TARGET, ProcedureKind.SEED)
    told = procedure([ORDERS, USERS], TARGET, ProcedureKind.SEED)
    assert "--reassignment-json-file reassignment.json --execute" in told
    assert "--here-only" not in told
    plan = json.loads(reassignment([TopicToCreate("users", 3, 2, {})], TARGET))
    assert [p["replicas"] for p in plan["partitions"]] == [[1, 2], [2, 3], [3, 1]]
    assert {(p["topic"], p["partition"]) for p in plan["partitions"]} == {("users", n) for n in range(3)}


def test_brokers_that_are_not_known_are_asked_for() -> None:
    few = OfflineTarget(1, "prod", ("/data",), 1, (1,))
    assert "3 replicas are wanted, and only brokers 1 are known" in procedure([USERS], few, ProcedureKind.SEED)


def test_every_replica_gets_the_same() -> None:
    told = procedure([USERS], TARGET, ProcedureKind.EVERY)
    assert "--partitions 1 --replication-factor 3" in told
    assert "Stop every broker" in told
    assert "--to-log-dirs /var/lib/kafka/a,/var/lib/kafka/b --here-only" in told
    assert "reassign" not in told


def test_configs_go_back_to_what_was_archived() -> None:
    entity = 'kafka-configs.sh --bootstrap-server "$BROKERS" --alter --entity-type topics --entity-name users'
    assert config_commands(USERS) == [
        f"{entity} --add-config 'cleanup.policy=[compact,delete],retention.ms=-1'",
        f"{entity} --delete-config retention.bytes",
    ]


def test_long_lists_are_cut() -> None:
    many = TopicToCreate("many", 50, 1, {}, tuple((n, 0, 1) for n in range(50)))
    told = procedure([many], TARGET, ProcedureKind.SINGLE)
    assert "many:19 from 0 to 1\n   …" in told
    assert "many:20" not in told
