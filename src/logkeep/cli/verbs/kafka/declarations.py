"""Declarations of the verbs of `logkeep kafka`: options, exit codes, help. Their work is loaded when they run."""

import click

from logkeep.cli.frame.exit_codes import STORE_EXITS
from logkeep.cli.frame.verb import Declaration
from logkeep.config.options import (
    ACCEPT_DELETIONS,
    ALL,
    ALLOW_GAPS,
    APPLICATION,
    AT_TIME,
    AVRO_CODEC,
    AVRO_SCHEMA,
    BACKUP_ID,
    BROKERS,
    BY_RECORD,
    CATCH_UP_BYTES,
    CHECKPOINT_TIMEOUT,
    CLIENT_RACK,
    COMPACTED,
    COMPRESSION,
    CONFIRM_CLUSTER,
    CONTAINS,
    CONTROLLER_CONFIG,
    CONTROLLERS,
    COORDINATION_TOPIC,
    DATASET_FORMAT,
    DATASET_URL,
    DECODE,
    DROP_TOMBSTONES,
    ENGINE_OPTIONS,
    ERASED_FROM,
    FOLLOW,
    FROM_BACKUP,
    GENERATION_DAYS,
    GROUP,
    GROUP_HISTORY,
    HERE_ONLY,
    IMPORT_FORMAT,
    INSTANCE,
    INSTANCE_ROLE,
    INTERNAL,
    INTERVAL,
    INTO_EXISTING,
    ISOLATION,
    KAFKA_TARGET,
    KEEP_ALL,
    LAST_RECORDS,
    LEASE_TTL,
    LIMIT_DOWNLOAD,
    LIMIT_PRODUCE,
    LIMIT_UPLOAD,
    LOG_DIRS,
    MOST_ROWS,
    NO_PROOF,
    OFFSETS,
    PARTITION_COUNT,
    PARTITIONS,
    PROGRESS,
    RAW_RECORDS,
    RECEIPT_OPTIONS,
    RECORD_HEADER,
    RECORD_KEY,
    REGISTRY_OPTIONS,
    RENAME,
    REPARTITION,
    REPLACE_RECORDS,
    REPLICATION_FACTOR,
    RESTORE_FROM,
    RESTORED_GROUPS,
    RESUME,
    RESUME_RESTORE,
    REWRITE,
    SCHEMA_DIR,
    SCHEMAS_TOPIC,
    SCRAM_TO,
    SCRATCH,
    SEGMENT_BYTES,
    SHOW_FROM,
    SINCE,
    STANDBY,
    STORE_OPTIONS,
    TAG,
    TO_LOG_DIRS,
    TOPIC_SELECTION,
    TRANSACTIONS,
    UNTIL,
    UNTIL_OFFSET,
    UNTIL_TIME,
    WHAT,
    WRITE_OPTIONS,
)

BACKUP = Declaration(
    """Back up a Kafka cluster: its logs byte for byte, topics, groups, ACLs, quotas.

    Every run continues where the last one ended, per topic id and partition. The cut is the high watermark of each
    partition, moved past the markers of transactions that ended meanwhile. Records that retention removed before they
    were copied are a gap: the backup is completed, the gap is recorded, and the run ends with 21.

    Of a compacted topic, a run proves that it read every deletion: within `delete.retention.ms` of the last cut, or
    because no offset is missing. Otherwise it compares the archive with the live log (--compacted) and buries archived
    records of keys that were deleted. What stays unproven is a finding, and the run ends with 2.

    With --registry the schemas of a registry are archived too, deleted ones included; see `kafka schemas`.

    With --follow it repeats, round after round, until SIGTERM or SIGINT: the first signal completes the round and
    commits, a second one aborts it. A round in which nothing changed commits nothing. Each round prints one line, with
    --json one document; the last line sums up the whole run.

    With --format and --to the records are written as a dataset in a format of other tools, without a repository: what a
    consumer would read, up to the last stable offset. A later run continues where the dataset ends. See `kafka export`.

    With --application the backup has a consistent cut of a consume-process-produce application: every task takes a
    checkpoint, and the positions of all of them are stored. `kafka restore` of that backup restores the cut.

    With --standby several instances follow the same source. One of them is active and makes the rounds; it renews its
    role in the repository. The others wait, and one becomes active when the role is released, or was not renewed
    for --lease-ttl and a third of it. `status` names all instances.
    """,
    options=(
        *STORE_OPTIONS,
        *KAFKA_TARGET,
        CLIENT_RACK,
        *TOPIC_SELECTION,
        INTERNAL,
        APPLICATION,
        CHECKPOINT_TIMEOUT,
        SCRAM_TO,
        CONTROLLERS,
        CONTROLLER_CONFIG,
        *REGISTRY_OPTIONS,
        BACKUP_ID,
        DATASET_FORMAT,
        DATASET_URL,
        PARTITIONS,
        ISOLATION,
        REWRITE,
        AVRO_SCHEMA,
        AVRO_CODEC,
        SEGMENT_BYTES,
        COMPRESSION,
        ALLOW_GAPS,
        COMPACTED,
        GENERATION_DAYS,
        CATCH_UP_BYTES,
        ACCEPT_DELETIONS,
        RESUME,
        FOLLOW,
        INTERVAL,
        STANDBY,
        INSTANCE,
        INSTANCE_ROLE,
        COORDINATION_TOPIC,
        TAG,
        *ENGINE_OPTIONS,
        LIMIT_DOWNLOAD,
        LIMIT_UPLOAD,
        *WRITE_OPTIONS,
    ),
    exits=(2, 10, 20, 21, 31, 50, *STORE_EXITS),
    changes=True,
    measured=True,
    examples=(
        "logkeep kafka backup --bootstrap-servers broker:9092 -r s3://bucket/logkeep --source prod",
        "logkeep kafka backup --topics 'orders|payments.*' --dry-run",
        "logkeep kafka backup --follow --interval 10s",
        "logkeep kafka backup --format kafka-backup-v1 --to /srv/dataset --bootstrap-servers broker:9092",
        "logkeep kafka backup --follow --standby --instance b --role passive",
    ),
)

RESTORE = Declaration(
    """Restore a backup into a Kafka cluster: records, configs, groups, and a proof.

    The plan is shown and confirmed first; --dry-run ends there. Topics are created with the archived partition counts,
    filled by an idempotent producer, read back and compared record by record, and only then get their own configs.
    Then each group is set to the record that it would have read next. Topics that hold records are refused. After any
    interruption --resume RESTORE-ID continues, and no record is written twice.

    With --to-log-dirs nothing is sent: segment files are written into the directories of a stopped broker. The dry run
    prints the whole procedure for this cluster.

    With --from URL a dataset or an archive of another tool is restored: see `kafka import`. It is imported into a
    scratch repository that is removed at the end. Such a restore cannot be resumed. What is doubtful in the archive is
    reported (2); if offsets are missing that it had, the others are restored and the run ends with 21.
    """,
    options=(
        *RECEIPT_OPTIONS,
        *KAFKA_TARGET,
        *TOPIC_SELECTION,
        RENAME,
        PARTITIONS,
        REPARTITION,
        UNTIL_TIME,
        BY_RECORD,
        UNTIL_OFFSET,
        TRANSACTIONS,
        OFFSETS,
        ISOLATION,
        WHAT,
        RESTORED_GROUPS,
        INTO_EXISTING,
        REPLICATION_FACTOR,
        CONFIRM_CLUSTER,
        TO_LOG_DIRS,
        REPLACE_RECORDS,
        HERE_ONLY,
        BROKERS,
        RESUME_RESTORE,
        KEEP_ALL,
        NO_PROOF,
        RESTORE_FROM,
        IMPORT_FORMAT,
        PARTITION_COUNT,
        SCRATCH,
        LIMIT_PRODUCE,
        LIMIT_DOWNLOAD,
        *ENGINE_OPTIONS,
        PROGRESS,
    ),
    arguments=(click.Argument(["backup"], metavar="[ID]", required=False),),
    exits=(2, 10, 20, 21, 30, 31, 43, 50, *STORE_EXITS),
    changes=True,
    measured=True,
    examples=(
        "logkeep kafka restore latest --bootstrap-servers broker:9092 --dry-run",
        "logkeep kafka restore 20261114020000 --topics 'orders.*' --rename 's/^/restored-/'",
        "logkeep kafka restore latest --until-time 2026-11-14T02:00:00Z",
        "logkeep kafka restore --resume 20261114031500",
    ),
)

RESTORE_ABORT = Declaration(
    """Abort a restore: topics that it created are deleted, others get their configs back.

    Topics are identified by their ids: a topic that was created again under the same name is not deleted. The restore
    cannot be resumed afterwards; its documents are kept.
    """,
    options=(*RECEIPT_OPTIONS, *KAFKA_TARGET),
    arguments=(click.Argument(["restore_id"], metavar="RESTORE-ID", type=int),),
    exits=(2, 31, 50, *STORE_EXITS),
    changes=True,
    examples=("logkeep kafka restore abort 20261114031500 --dry-run",),
)

FOLD = Declaration(
    """Keep only the latest record of each key in archived compacted topics, for all kept backups.

    Works without the cluster. The cut of every kept backup counts, also of a held one: each restores the same latest
    record of each key as before. Records that no kept backup needs, and records of aborted transactions, are gone
    afterwards; offsets, times, headers and compression stay. The new objects are read back from the store and compared
    before they replace the old ones, in one commit for each log. Between two kept cuts there are no restore points any
    more. The old objects become garbage, which `prune` removes.

    A topic is folded if it was compacted in every kept backup that holds it; Kafka's own topics only if --topics has
    their names.
    """,
    options=(
        *STORE_OPTIONS,
        *TOPIC_SELECTION,
        DROP_TOMBSTONES,
        *ENGINE_OPTIONS,
        LIMIT_UPLOAD,
        LIMIT_DOWNLOAD,
        *WRITE_OPTIONS,
    ),
    exits=(10, 20, 50, *STORE_EXITS),
    changes=True,
    examples=("logkeep kafka fold --dry-run", "logkeep kafka fold --topics 'customers|accounts.*'"),
)

GROUPS = Declaration(
    """Show the archived offsets of consumer groups, also for topics that were deleted since.

    Needs a backup that was taken with --internal. When a topic is deleted, the cluster deletes the offsets of
    its groups; the archived log of `__consumer_offsets` still has them, with their times. `kafka groups restore` sets
    them again, `kafka groups rollback` undoes that.

    With --at, the offsets that groups had at a time; with --history, every archived commit and how it ended. Compaction
    removes replaced records, and what it removed before a backup read it is not archived: each answer says for which
    times it is complete. For other times it is "at least".
    """,
    options=(*STORE_OPTIONS, GROUP, AT_TIME, GROUP_HISTORY, RAW_RECORDS, SINCE, ALL, *ENGINE_OPTIONS, PROGRESS),
    arguments=(click.Argument(["backup"], metavar="[ID]", default="latest"),),
    exits=(10, 50, *STORE_EXITS),
    examples=(
        "logkeep kafka groups latest --group billing",
        "logkeep kafka groups latest --group billing --at '2026-11-14 02:00'",
        "logkeep kafka groups latest --group billing --history --since -1d",
        "logkeep kafka groups latest --json",
    ),
)

GROUPS_RESTORE = Declaration(
    """Restore the offsets of consumer groups, in the cluster that has their records.

    With RESTORE-ID offsets are translated by the exact map of that restore. With --backup they are used as they are,
    for records at their original offsets, within the bounds of the target's logs. Where the topic is not the archived
    one, the records around each offset are compared with the archive. A group continues with the record
    that it would have read next; where that is not possible, the reason and the number of records read again are
    shown. A group with active consumers is refused. Earlier offsets are stored: see `kafka groups rollback`.

    With --at, the offsets that groups had at a time, from the archived `__consumer_offsets` of the same backup. An
    offset that was committed for an earlier topic of the same name is left out, and so are groups that had none.
    """,
    options=(
        *RECEIPT_OPTIONS,
        *KAFKA_TARGET,
        FROM_BACKUP,
        RESTORED_GROUPS,
        *TOPIC_SELECTION,
        RENAME,
        ERASED_FROM,
        AT_TIME,
        ALL,
    ),
    arguments=(click.Argument(["restore"], metavar="[RESTORE-ID]", required=False),),
    exits=(2, 10, 30, 31, 50, *STORE_EXITS),
    changes=True,
    examples=(
        "logkeep kafka groups restore latest --groups 'billing.*' --dry-run",
        "logkeep kafka groups restore --backup latest --bootstrap-servers broker:9092",
        "logkeep kafka groups restore --backup latest --at '2026-11-14 02:00' --groups billing --dry-run",
    ),
)

GROUPS_ROLLBACK = Declaration(
    """Undo a restore of consumer groups: each gets the offsets it had before.

    Overwritten offsets are set again. Offsets that did not exist before are removed, and so are groups that have no
    others. A group with active consumers is refused. A rollback can be rolled back.
    """,
    options=(*RECEIPT_OPTIONS, *KAFKA_TARGET, ALL),
    arguments=(click.Argument(["restore"], metavar="RESTORE-ID"),),
    exits=(2, 10, 30, 31, 50, *STORE_EXITS),
    changes=True,
    examples=("logkeep kafka groups rollback latest --dry-run", "logkeep kafka groups rollback 20261116021500 -y"),
)

SHOW_RECORDS = Declaration(
    """Show archived records of a topic: at an offset, the first or last ones, or those with a key or a text.

    Only the batches that hold what is wanted are read, through the index beside every archived object. Records are
    those that a restore of this backup brings back: without aborted transactions, and without keys of compacted topics
    that were deleted. They come by partition and offset; with --last by time.

    Keys and values that name a schema (Confluent's framing) are decoded by the registry that was archived with this
    backup: its topic `_schemas`, or what `kafka backup --registry` read. Where something cannot be decoded, its row
    says why. With --key, the partition of Kafka's hash is searched first; others only if the key is not there.

    With --from, records of a dataset that `kafka import` would take. It has no registry: use --schema-dir. Offsets that
    are missing in it, among those that were read, are noted.
    """,
    options=(
        *STORE_OPTIONS,
        SINCE,
        UNTIL,
        LAST_RECORDS,
        RECORD_KEY,
        CONTAINS,
        RECORD_HEADER,
        MOST_ROWS,
        ISOLATION,
        SHOW_FROM,
        DECODE,
        SCHEMA_DIR,
        SCHEMAS_TOPIC,
        LIMIT_DOWNLOAD,
    ),
    arguments=(
        click.Argument(["records"], metavar="TOPIC[:PARTITION[:OFFSET]]"),
        click.Argument(["backup"], metavar="[ID]", default="latest"),
    ),
    exits=(10, 50, *STORE_EXITS),
    examples=(
        "logkeep kafka show orders:3:81726",
        "logkeep kafka show orders --last 5",
        "logkeep kafka show orders 20261114020000 --key customer-17 --since '2026-11-13 22:00'",
        "logkeep kafka show orders --contains timeout --limit 10 --json",
    ),
)

GENERATIONS = Declaration(
    """Show the copies of compacted topics: the active one, older ones, and one that is being made.

    A row is one log in one generation. The active one is in the newest backup. A catch-up is copied beside it and
    becomes active with one backup. A passive one is kept because older backups need it; `prune` frees it with them.
    """,
    options=(*STORE_OPTIONS, *TOPIC_SELECTION, ALL),
    exits=(10, *STORE_EXITS),
    examples=("logkeep kafka generations --topics accounts", "logkeep kafka generations --json"),
)

GENERATIONS_NEW = Declaration(
    """Begin a new generation of compacted topics: fresh copies that leave out what compaction has removed.

    The next runs of `kafka backup` copy it beside the active one, --catch-up-bytes in each run or round, and read it
    back. When it has reached the ends of all partitions, one backup makes it active. Earlier backups keep what they
    have. A catch-up that is under way is left as it is.
    """,
    options=(*STORE_OPTIONS, *TOPIC_SELECTION, LEASE_TTL),
    exits=(10, 50, *STORE_EXITS),
    changes=True,
    examples=("logkeep kafka generations new --topics accounts --dry-run",),
)

GENERATIONS_CANCEL = Declaration(
    """End catch-ups of compacted topics: the active copies stay in use.

    What was copied of them becomes garbage, which `prune` deletes. No backup changes. With
    --compacted-log-backup-length-days the next run begins another one where the active copy is too old.
    """,
    options=(*STORE_OPTIONS, *TOPIC_SELECTION, LEASE_TTL),
    exits=(10, 50, *STORE_EXITS),
    changes=True,
    examples=("logkeep kafka generations cancel --topics accounts --dry-run",),
)

SALVAGE = Declaration(
    """Back up a Kafka cluster from the disks of brokers that no longer run.

    Reads the directories of `log.dirs`, of one broker or of several, and never writes to them. Of several replicas of a
    partition the one with the highest leader epoch is used; others supply what is damaged. The result is a backup of
    the same source as those of `kafka backup`, and continues where the last one ended.
    """,
    options=(
        *STORE_OPTIONS,
        LOG_DIRS,
        *TOPIC_SELECTION,
        INTERNAL,
        BACKUP_ID,
        SEGMENT_BYTES,
        ALLOW_GAPS,
        TAG,
        *ENGINE_OPTIONS,
        LIMIT_UPLOAD,
        *WRITE_OPTIONS,
    ),
    exits=(2, 10, 20, 21, 50, *STORE_EXITS),
    changes=True,
    measured=True,
    examples=(
        "logkeep kafka salvage --log-dirs /var/lib/kafka/data -r s3://bucket/logkeep --source prod",
        "logkeep kafka salvage --log-dirs broker-1/a,broker-1/b --log-dirs broker-2/a --dry-run",
    ),
)
