"""Declarations of verbs for every kind of source whose work loads Arrow or a client: options, exit codes, help."""

import click

from logkeep.cli.frame.exit_codes import STORE_EXITS
from logkeep.cli.frame.verb import Declaration
from logkeep.config.options import (
    ALL,
    ENGINE_OPTIONS,
    GARBAGE_OPTIONS,
    KAFKA_TARGET,
    LEVEL,
    LIMIT_DOWNLOAD,
    MEMBER,
    PROGRESS,
    RETENTION_OPTIONS,
    SAMPLE,
    SHOW_KEYS,
    SQL_AS,
    SQL_BACKUP,
    SQL_DECODE,
    SQL_FROM,
    SQL_LIMIT,
    SQL_OUTPUT,
    STORE_OPTIONS,
    TOPIC,
    TRIM_OPTIONS,
)

INFO = Declaration(
    """Show what is in a backup: its logs, ranges, sizes, gaps, findings.

    ID is a number, a unique prefix of one, or `latest`. When several sources have backups under the same id, they are
    one group backup: all are shown, and the state is that of the group. For Kafka it shows topics by size, groups
    by lag and what a restore would need; for ZooKeeper, the last transaction of each member and what can be restored.
    No archived data is read.
    """,
    options=(*STORE_OPTIONS, TOPIC, ALL),
    arguments=(click.Argument(["backup"], metavar="[ID]", default="latest"),),
    exits=(10, *STORE_EXITS),
    examples=(
        "logkeep info latest",
        "logkeep info latest --topic 'orders.*'",
        "logkeep info 20261115103000 --source prod --json",
    ),
)

VERIFY = Declaration(
    """Verify a backup and name every object that is missing or damaged.

    `files` follows the chain from its first commit, opens the manifest and all parts, and checks every object's
    existence and size. `data` reads every byte and compares SHA-256, and in Kafka's logs the CRC of every batch.
    `records` also decodes every record, and stores a digest of each log, which later runs compare. `source` also
    compares the backup's logs with what the live cluster still holds; records that differ there end it with 10, and so
    do deleted keys that a restore would bring back: neither is damage of the backup. Nothing is repaired. The result is
    stored in the repository: `list` shows it, and a damaged backup never counts as a good one for `prune`.

    For ZooKeeper, `data` also checks the checksums of snapshots and logs, and gaps between files, and reports what can
    be restored. `replay` applies every transaction and compares every digest that the servers wrote; `boot` starts a
    real server on a copy and compares its whole tree with the replayed one.
    """,
    options=(*STORE_OPTIONS, LEVEL, SAMPLE, SHOW_KEYS, *KAFKA_TARGET, *ENGINE_OPTIONS, LIMIT_DOWNLOAD, PROGRESS),
    arguments=(click.Argument(["backup"], metavar="[ID]", default="latest"),),
    exits=(2, 10, 20, *STORE_EXITS),
    measured=True,
    examples=(
        "logkeep verify",
        "logkeep verify latest --level data --sample 1/7",
        "logkeep verify --level source --bootstrap-servers broker:9092",
    ),
)

DELETE = Declaration(
    """Delete backups by id.

    The last good backup of a source, held backups and those in use by a restore or verification are never deleted.
    Objects that other backups need stay; the rest becomes garbage and is removed in two phases.
    """,
    options=(*STORE_OPTIONS, *GARBAGE_OPTIONS),
    arguments=(click.Argument(["backups"], metavar="ID...", nargs=-1, required=True),),
    exits=(2, 10, 50, *STORE_EXITS),
    changes=True,
    examples=("logkeep delete 20261114020000 --dry-run",),
)

PRUNE = Declaration(
    """Delete the backups that the retention policy does not keep, and free space.

    A backup stays when any rule keeps it, and every decision is printed with its reason. Without a rule nothing is
    deleted. The newest good backup always stays, and damaged ones never count as good. Space is freed in two phases:
    garbage is marked now and deleted by a later run.

    With --source-retention, backups of a Kafka cluster that stay are trimmed: of each topic, segments go that are
    older than its `retention.ms` or beyond its `retention.bytes`, and below its log start in the newest good backup.
    --topic-retention sets other limits for some topics. What a held backup, a reader or a kept tag needs stays, and
    the newest good backup is never trimmed. Every topic is printed with its reason.
    """,
    options=(*STORE_OPTIONS, *GARBAGE_OPTIONS, *RETENTION_OPTIONS, *TRIM_OPTIONS),
    exits=(2, 10, 50, *STORE_EXITS),
    changes=True,
    examples=(
        "logkeep prune --keep-daily 7 --keep-weekly 5 --keep-monthly 12 --dry-run",
        "logkeep prune --source-retention --topic-retention 'audit.*=forever' --dry-run",
    ),
)

SQL_QUERY = Declaration(
    """Query a backup with SQL.

    Every topic is a table; a name with other characters than letters, digits and _ needs backticks: `my-topic.x`.
    Columns are those of Spark's Kafka source: key, value, topic, partition, offset, timestamp, timestampType, headers.
    `records` has the records of all topics but Kafka's own. `logkeep_topics`, `logkeep_partitions`, `logkeep_groups`
    and `logkeep_segments` describe the backup. With --as then=ID another backup is there as well: `then.orders`. What
    a read-committed consumer would not see is left out. Filters by topic, partition, offset and timestamp limit what is
    read; where producers set the times, a window of time is read to the end of the log.

    With --from the topics of a dataset are the tables, and `records`; every query reads whole topics. Files of it that
    are missing are noted.

    A ZooKeeper source has one table, `transactions`: see `zookeeper log`.

    Key and value are bytes: `CAST(value AS STRING)`. In a table they are text where they are UTF-8, else 0x…; in csv
    and jsonl they are base64. Needs Spark.
    """,
    options=(*STORE_OPTIONS, SQL_BACKUP, SQL_AS, SQL_FROM, SQL_DECODE, SQL_OUTPUT, SQL_LIMIT, MEMBER, *ENGINE_OPTIONS),
    arguments=(click.Argument(["query"], metavar="QUERY"),),
    exits=(10, 20, 50, *STORE_EXITS),
    examples=(
        'logkeep sql "SELECT partition, count(*) FROM orders GROUP BY partition"',
        "logkeep sql 'SELECT CAST(value AS STRING) FROM `my-topic.x` WHERE offset >= 5000' --limit 20",
        "logkeep sql --as then=20261114020000 'SELECT key FROM `then.orders` EXCEPT SELECT key FROM orders'",
        "logkeep sql \"SELECT * FROM records WHERE topic LIKE 'pay%'\" --output parquet > payments.parquet",
    ),
)
