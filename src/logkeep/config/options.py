"""Every option, declared once by topic, and groups of options. The order here is the order of the reference page.

A verb takes only the options that it names. `OPTIONS` is what configuration files and the environment may set.
"""

from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

from logkeep.config.option import SECRET, Option, SecretOption, Where
from logkeep.config.option_types import (
    Bool,
    Duration,
    FilePath,
    Int,
    OneOf,
    Ratio,
    Size,
    SourceName,
    SparkConf,
    Text,
    TextList,
    Timestamp,
    ZxidNumber,
)
from logkeep.config.spark_code import refuse_code
from logkeep.config.topic_retention import TopicRetentions
from logkeep.kafka.retention.rules import TopicRetention

_AUTO = ("auto", "always", "never")

# Every verb: the repository, output, logs
REPO: Option[str | None] = Option(
    "repo", Text("URL"), None, "Repository: file:///dir, s3://bucket/prefix, gs://…, az://….",
    key="repository.url", short="r", variables=("LOGKEEP_REPO",),
)  # fmt: skip
SOURCE: Option[str | None] = Option(
    "source", SourceName(), None,
    "Source to work on; not needed when the repository holds only one. A first backup without it "
    "makes a source with the name of its kind, such as `kafka`.",
    key="repository.source", variables=("LOGKEEP_SOURCE",),
)  # fmt: skip
CONFIG: Option[Path | None] = Option(
    "config", FilePath(), None, "Read this file in place of ./logkeep.yaml.",
    where=Where.FLAG_AND_ENVIRONMENT, variables=("LOGKEEP_CONFIG",),
)  # fmt: skip

JSON: Option[bool] = Option("json", Bool(), False, "Print one JSON document on stdout.", where=Where.FLAG)
DRY_RUN: Option[bool] = Option(
    "dry-run", Bool(), False, "Show what would be done and change nothing.", short="n", where=Where.FLAG
)
YES: Option[bool] = Option("yes", Bool(), False, "Do not ask for confirmation.", short="y", where=Where.FLAG)
QUIET: Option[bool] = Option(
    "quiet", Bool(), False, "No progress, and only errors in the log.", short="q", where=Where.FLAG
)
VERBOSE: Option[int] = Option(
    "verbose", Int(), 0, "Log progress; -vv logs details.", short="v", where=Where.FLAG, counted=True
)
COLOR: Option[str] = Option(
    "color", OneOf(_AUTO), "auto", "Use colours; auto means on a terminal, unless NO_COLOR is set.", key="output.color"
)
PROGRESS: Option[str] = Option(
    "progress", OneOf(_AUTO), "auto",
    "Show progress; auto means a bar on a terminal and a line every 30 s elsewhere.", key="output.progress",
)  # fmt: skip
LOG_LEVEL: Option[str | None] = Option(
    "log-level", OneOf(("debug", "info", "warning", "error")), None, "Lowest level of messages to log.",
    key="logging.level", default_text="warning; info with a log file",
)  # fmt: skip
LOG_FORMAT: Option[str] = Option(
    "log-format",
    OneOf(("text", "json")),
    "text",
    "Format of log lines: for people or for machines.",
    key="logging.format",
)
LOG_FILE: Option[Path | None] = Option(
    "log-file", FilePath(), None, "Append the log to this file (mode 0600) in place of stderr.", key="logging.file"
)
METRICS_FILE: Option[Path | None] = Option(
    "metrics-file", FilePath(), None, "Prometheus textfile to update after the run.", key="metrics.file"
)

# Limits, retries, and the engine that runs units
_RATE = Size(minimum=1024, expected="a size such as 16MiB, 16M or 16777216, of at least 1 KiB")
LIMIT_UPLOAD: Option[int | None] = Option(
    "limit-upload", _RATE, None, "Write to the store at most this many bytes per second.",
    key="transfer.limit_upload", default_text="no limit",
)  # fmt: skip
LIMIT_DOWNLOAD: Option[int | None] = Option(
    "limit-download", _RATE, None, "Read at most this many bytes per second, from the store or the cluster.",
    key="transfer.limit_download", default_text="no limit",
)  # fmt: skip
RETRY_FOR: Option[timedelta] = Option(
    "retry-for", Duration(), timedelta(minutes=2),
    "How long to retry when the store fails or stops answering; at most 30 s when it never answered.",
    key="transfer.retry_for",
)  # fmt: skip

ENGINE: Option[str] = Option(
    "engine", OneOf(("auto", "spark", "inline")), "auto", "Where data is processed; auto means where it is faster.",
    key="engine.kind",
)  # fmt: skip
MASTER: Option[str | None] = Option(
    "master", Text("URL"), None, "Spark master: local[4], spark://host:7077, yarn, k8s://….",
    key="engine.master", default_text="all cores of this machine",
)  # fmt: skip
PARALLEL: Option[int | None] = Option(
    "parallel",
    Int(1),
    None,
    "Maximum number of parallel units, on this machine.",
    key="engine.parallel",
    default_text="one per core",
)
SPARK_CONF: Option[tuple[tuple[str, str], ...]] = Option(
    "spark-conf", SparkConf(), (), "Setting for Spark; may be repeated.", key="engine.spark_conf",
    not_from_found_file=refuse_code,
)  # fmt: skip
SPARK_SECRET = SecretOption(
    "spark-secret", SECRET, None, "Secret of a standalone Spark cluster (its spark.authenticate.secret).",
    key="engine.spark_secret",
)  # fmt: skip

# Retention of backups, and trims of topics
KEEP_LAST: Option[int | None] = Option(
    "keep-last", Int(), None, "Keep the newest N backups.", key="retention.keep_last"
)
KEEP_HOURLY: Option[int | None] = Option(
    "keep-hourly", Int(), None, "Keep the newest backup of each of the last N hours that have one.",
    key="retention.keep_hourly",
)  # fmt: skip
KEEP_DAILY: Option[int | None] = Option(
    "keep-daily",
    Int(),
    None,
    "Keep the newest backup of each of the last N days that have one.",
    key="retention.keep_daily",
)
KEEP_WEEKLY: Option[int | None] = Option(
    "keep-weekly",
    Int(),
    None,
    "Keep the newest backup of each of the last N ISO weeks that have one.",
    key="retention.keep_weekly",
)
KEEP_MONTHLY: Option[int | None] = Option(
    "keep-monthly",
    Int(),
    None,
    "Keep the newest backup of each of the last N months that have one.",
    key="retention.keep_monthly",
)
KEEP_YEARLY: Option[int | None] = Option(
    "keep-yearly",
    Int(),
    None,
    "Keep the newest backup of each of the last N years that have one.",
    key="retention.keep_yearly",
)
KEEP_WITHIN: Option[timedelta | None] = Option(
    "keep-within", Duration(), None, "Keep every backup younger than this.", key="retention.keep_within"
)
KEEP_TAG: Option[tuple[str, ...]] = Option(
    "keep-tag", TextList("TAG"), (), "Keep backups with this tag; may be repeated.", key="retention.keep_tag"
)
KEEP_DAYS: Option[int | None] = Option(
    "keep-days", Int(), None, "Keep backups of the last N days.", key="retention.keep_days"
)
KEEP_COUNT: Option[int | None] = Option(
    "keep-count", Int(), None, "Keep no more than N backups.", key="retention.keep_count"
)
KEEP_MIN_COUNT: Option[int | None] = Option(
    "keep-min-count", Int(), None, "Never go below N good backups.", key="retention.keep_min_count",
    default_text="3 with --keep-days or --keep-count",
)  # fmt: skip
DELETE_DAMAGED: Option[bool] = Option(
    "delete-damaged", Bool(), False, "Let the policy also remove backups that are known to be damaged.",
    where=Where.FLAG,
)  # fmt: skip
SOURCE_RETENTION: Option[bool] = Option(
    "source-retention", Bool(), False,
    "Trim older backups of a Kafka cluster: of each topic keep what its own retention guarantees.",
    key="retention.source",
)  # fmt: skip
OLDER_THAN: Option[timedelta | None] = Option(
    "older-than", Duration(), None, "Delete segments whose newest record is older than this.", where=Where.FLAG
)
TOPIC_RETENTION: Option[tuple[TopicRetention, ...]] = Option(
    "topic-retention", TopicRetentions(), (),
    "Trim topics whose name matches RE to TIME (source, forever or a duration) or SIZE per partition; may be "
    "repeated, the first match counts.",
    key="retention.topics",
)  # fmt: skip
GRACE: Option[timedelta] = Option(
    "grace", Duration(), timedelta(days=7),
    "A lowered retention of a topic counts this long after the first backup that saw it.", key="retention.grace",
)  # fmt: skip
LESS_THAN_SOURCE: Option[bool] = Option(
    "less-than-source", Bool(), False, "Let --topic-retention keep less than the topic guarantees.", where=Where.FLAG
)
ACCEPT_LOSS: Option[bool] = Option(
    "accept-loss", Bool(), False, "Continue without what is permanently lost.", where=Where.FLAG
)

# The demo and the simulator
DIRECTORY: Option[Path | None] = Option(
    "directory", FilePath("DIR"), None, "Work in this directory; it must be empty or new.", where=Where.FLAG,
    default_text="a temporary one",
)  # fmt: skip
KEEP: Option[bool] = Option("keep", Bool(), False, "Keep the directory at the end.", where=Where.FLAG)
STAY: Option[bool] = Option(
    "stay", Bool(), False, "Start and fill the servers, and keep them running until Ctrl-C.", where=Where.FLAG
)
ONLY: Option[str | None] = Option(
    "only", OneOf(("kafka", "zookeeper", "sets")), None,
    "Show this kind of source only, or an application with both under one id.", where=Where.FLAG,
    default_text="all of them",
)  # fmt: skip
SEEDS: Option[str] = Option(
    "seeds", Text("A..B"), "0..500", "Run the schedules of seeds from A up to B, without B.", where=Where.FLAG,
)  # fmt: skip
SIMULATED_APPLICATION: Option[str | None] = Option(
    "simulated-application", Text("FILE[:NAME]"), None,
    "Simulate the application of this program: its handlers, @sample_command and @invariant.", where=Where.FLAG,
    default_text="a shop", typed="application",
)  # fmt: skip
REPLAY: Option[int | None] = Option(
    "replay", Int(maximum=10**12), None, "Run the schedule of this seed alone.", where=Where.FLAG,
    default_text="all of --seeds",
)  # fmt: skip

# Holds, garbage, leases
REASON: Option[str] = Option("reason", Text("TEXT"), "", "The reason, shown by `list`.", where=Where.FLAG)

GC_AGE: Option[timedelta] = Option(
    "gc-age", Duration(), timedelta(hours=24), "Unreferenced objects younger than this are never deleted.", key="gc.age"
)
GC_INTERVAL: Option[timedelta] = Option(
    "gc-interval",
    Duration(),
    timedelta(hours=4),
    "Minimum time between marking garbage and deleting it.",
    key="gc.interval",
)
LEASE_TTL: Option[timedelta] = Option(
    "lease-ttl", Duration(), timedelta(minutes=5), "A run that has not renewed its lease for this long counts as dead.",
    key="lease.ttl",
)  # fmt: skip

# Objectives of `status`, and levels of `verify`
MAX_AGE: Option[timedelta | None] = Option(
    "max-age", Duration(), None, "Objective: exit 60 when the newest good backup is older.", key="status.max_age"
)
MAX_LAG: Option[int | None] = Option(
    "max-lag", Int(0, 10**18 - 1), None,
    "Objective: exit 60 when a run with --follow last reported a larger lag, in offsets.",
    key="status.max_lag",
)  # fmt: skip
MAX_STANDBY_AGE: Option[timedelta | None] = Option(
    "max-standby-age", Duration(), None,
    "Objective: exit 60 when no passive instance of `kafka backup --standby` has reported for this long.",
    key="status.max_standby_age",
)  # fmt: skip
LEVEL: Option[str] = Option(
    "level", OneOf(("files", "data", "records", "source", "replay", "boot", "cut")), "files",
    "files compares names and sizes; data reads every byte. Kafka: records decodes them, source compares with the "
    "cluster. ZooKeeper: replay applies every transaction, boot starts a real server. Applications: cut proves that "
    "the cut is consistent.",
    key="verify.level",
)  # fmt: skip
SAMPLE: Option[Fraction] = Option(
    "sample",
    Ratio(),
    Fraction(1),
    "Share of the objects to read, another one each day: 1/7 daily covers all within a week.",
    key="verify.sample",
)
SHOW_KEYS: Option[bool] = Option(
    "show-keys",
    Bool(),
    False,
    "With --level source: print deleted keys in clear that a restore would bring back. They are never stored.",
    where=Where.FLAG,
)

# Kafka — The cluster, and what is selected of it
BOOTSTRAP_SERVERS: Option[str | None] = Option(
    "bootstrap-servers", Text("HOST:PORT,..."), None, "Brokers to connect to first.",
    key="kafka.bootstrap_servers", also=("--bootstrap-server",), per_source=True,
)  # fmt: skip
COMMAND_CONFIG: Option[Path | None] = Option(
    "command-config", FilePath(), None, "A Java client.properties file with security and other client settings.",
    key="kafka.command_config", per_source=True,
)  # fmt: skip
CLIENT_RACK: Option[str | None] = Option(
    "client-rack", Text("RACK"), None, "Read from replicas in this rack where the brokers offer them.",
    key="kafka.client_rack", default_text="client.rack of the client properties",
)  # fmt: skip
TOPICS: Option[tuple[str, ...]] = Option(
    "topics", TextList("REGEX"), (), "Topics whose whole name matches; may be repeated.", key="kafka.topics",
    default_text="all but internal ones", also=("--topic",),
)  # fmt: skip
EXCLUDE: Option[tuple[str, ...]] = Option(
    "exclude", TextList("REGEX"), (), "Topics to leave out, whatever else they match; may be repeated.",
    key="kafka.exclude",
)  # fmt: skip
INTERNAL: Option[bool] = Option("internal", Bool(), False, "Include internal topics.", key="kafka.internal")
TOPIC: Option[tuple[str, ...]] = Option(
    "topic", TextList("REGEX"), (), "Show these topics with all their partitions; may be repeated.", where=Where.FLAG,
    also=("--topics",),
)  # fmt: skip
GROUP: Option[tuple[str, ...]] = Option(
    "group", TextList("REGEX"), (), "Only groups whose whole name matches; may be repeated.", where=Where.FLAG
)

# Kafka — Archived groups and records, as they are shown
AT_TIME: Option[int | None] = Option(
    "at", Timestamp(), None, "The offsets that groups had at this time, from the archived __consumer_offsets.",
    where=Where.FLAG,
)  # fmt: skip
GROUP_HISTORY: Option[bool] = Option(
    "history", Bool(), False, "Show every archived commit, and how it ended.", where=Where.FLAG
)
RAW_RECORDS: Option[bool] = Option(
    "raw", Bool(), False, "Show every archived record of Kafka's own topics, also of unknown types.", where=Where.FLAG
)
SINCE: Option[int | None] = Option(
    "since", Timestamp(), None, "Only records of this time or later; of groups, with --history or --raw.",
    where=Where.FLAG,
)  # fmt: skip
UNTIL: Option[int | None] = Option(
    "until", Timestamp(), None,
    "Only records before this time. Later batches are read too where producers set the times.",
    where=Where.FLAG,
)  # fmt: skip
LAST_RECORDS: Option[int | None] = Option(
    "last", Int(1), None, "Show this many of the last records, by time, instead of the first ones.", where=Where.FLAG
)
RECORD_KEY: Option[str | None] = Option(
    "key", Text("KEY"), None, "Only records with this key: text, or bytes as hex:… or base64:….", where=Where.FLAG
)
CONTAINS: Option[str | None] = Option(
    "contains", Text("TEXT"), None, "Only records whose key or value contains this text, or hex:… or base64:….",
    where=Where.FLAG,
)  # fmt: skip
RECORD_HEADER: Option[str | None] = Option(
    "header", Text("NAME[=VALUE]"), None, "Only records with this header, and this value if one is given.",
    where=Where.FLAG,
)  # fmt: skip
DECODE: Option[str] = Option(
    "decode", OneOf(("auto", "text", "json", "hex", "avro")), "auto",
    "How keys and values are shown; auto uses archived schemas, then text, then hexadecimal digits.", where=Where.FLAG,
)  # fmt: skip
SCHEMA_DIR: Option[Path | None] = Option(
    "schema-dir", FilePath("DIR"), None,
    "Decode with the schemas in this directory: 7.avsc or 7.json has the id 7.", where=Where.FLAG,
    default_text="the archived registry",
)  # fmt: skip
ALL: Option[bool] = Option("all", Bool(), False, "Show all lines, not only the first ones.", where=Where.FLAG)

# Kafka — Backups and datasets
SCRAM_TO: Option[tuple[str, ...]] = Option(
    "scram-to", TextList("RECIPIENT"), (),
    "Archive SCRAM credentials, encrypted to this age public key (age1…); may be repeated.", key="kafka.scram_to",
)  # fmt: skip
CONTROLLERS: Option[str | None] = Option(
    "controllers", Text("HOST:PORT,..."), None, "Listeners of the controllers, to read SCRAM credentials from.",
    key="kafka.controllers", default_text="as reported by the brokers",
)  # fmt: skip
CONTROLLER_CONFIG: Option[Path | None] = Option(
    "controller-config", FilePath(), None, "A Java client.properties file for the controllers' listeners.",
    key="kafka.controller_config", default_text="as for the brokers",
)  # fmt: skip
BACKUP_ID: Option[int | None] = Option(
    "id", Int(1, 10**18 - 1), None, "Id of the new backup; must be larger than all earlier ids.", where=Where.FLAG,
    default_text="the UTC time",
)  # fmt: skip
SEGMENT_BYTES: Option[int] = Option(
    "segment-bytes", Size(minimum=1, expected="a size, such as 256MiB"), 256 << 20,
    "Begin a new object after the batch, or a new file of a dataset after the record, that crosses this size.",
    key="kafka.segment_bytes",
)  # fmt: skip
DATASET_FORMAT: Option[str | None] = Option(
    "dataset-format", OneOf(("kafka-backup-v1", "avro", "parquet")), None,
    "Write a dataset in this format, for other tools.", where=Where.FLAG, typed="format",
)  # fmt: skip
DATASET_URL: Option[str | None] = Option(
    "dataset-url", Text("URL"), None, "With --format: the directory or bucket of the dataset.",
    where=Where.FLAG, typed="to",
)  # fmt: skip
AVRO_SCHEMA: Option[str] = Option(
    "avro-schema", OneOf(("faithful", "seed001")), "faithful",
    "With --format avro: all that a record has, or the documented schema, which cannot hold everything.",
    where=Where.FLAG,
)  # fmt: skip
AVRO_CODEC: Option[str] = Option(
    "avro-codec", OneOf(("null", "deflate", "snappy", "zstandard")), "deflate",
    "With --format avro: compression of blocks.", where=Where.FLAG,
)  # fmt: skip
REWRITE: Option[tuple[str, ...]] = Option(
    "rewrite", TextList("TOPIC"), (),
    "With --format: write these topics anew beside the old ones and exchange them; may be repeated.", where=Where.FLAG,
)  # fmt: skip
COMPRESSION: Option[str] = Option(
    "compression", OneOf(("none", "zstd")), "none",
    "Compression of stored logs; zstd compresses batches that producers left uncompressed.", key="kafka.compression",
)  # fmt: skip
ALLOW_GAPS: Option[bool] = Option(
    "allow-gaps", Bool(), False, "Exit with 2 in place of 21 when retention was faster than the backup.",
    key="kafka.allow_gaps",
)  # fmt: skip
COMPACTED: Option[str] = Option(
    "compacted", OneOf(("auto", "recopy", "incremental")), "auto",
    "For compacted topics whose deletions are not proven: compare the archive with the live log and bury what was "
    "deleted, copy the topic again, or only report it.",
    key="kafka.compacted",
)  # fmt: skip

# Kafka — Schema registries
REGISTRY: Option[str | None] = Option(
    "registry", Text("URL"), None,
    "Schema registry, as http://host:8081: of Confluent, Karapace, Redpanda or Apicurio. See --registry-config.",
    key="kafka.registry",
)  # fmt: skip
REGISTRY_CONFIG: Option[Path | None] = Option(
    "registry-config", FilePath(), None,
    "File with basic.auth.user.info or bearer.auth.token, and ssl.*, for the registry. Only its owner may read it.",
    key="kafka.registry_config",
)  # fmt: skip
SCHEMAS_TOPIC: Option[str] = Option(
    "schemas-topic", Text("TOPIC"), "_schemas", "Topic in which the registry keeps its schemas.",
    key="kafka.schemas_topic",
)  # fmt: skip
SCHEMAS_CONTEXT: Option[str | None] = Option(
    "schemas-context", Text("NAME"), None, "Context of the registry, as .NAME; `.` is the usual one.",
    where=Where.FLAG, typed="context", default_text="the usual one, or the only one that has the id",
)  # fmt: skip
SCHEMAS_WAY: Option[str] = Option(
    "way", OneOf(("auto", "topic", "import", "api")), "auto",
    "Restore the registry's topic, import Apicurio's export, or register each schema; auto: import, topic or api.",
    where=Where.FLAG,
)  # fmt: skip
SCHEMAS_SAMPLE: Option[Fraction] = Option(
    "schemas-sample", Ratio(), Fraction(1), "Share of the objects to read, another one each day.", where=Where.FLAG,
    typed="sample",
)  # fmt: skip

# Kafka — Compacted topics
GENERATION_DAYS: Option[int | None] = Option(
    "compacted-log-backup-length-days", Int(1, 36_500), None,
    "Copy a compacted topic anew, beside its active copy, when that copy is older than N days.",
    key="compacted.log.backup.length.days", default_text="never by age",
)  # fmt: skip
CATCH_UP_BYTES: Option[int] = Option(
    "catch-up-bytes", Size(minimum=1, expected="a size such as 1GiB"), 1 << 30,
    "About how much of new generations of compacted topics one run or round copies.",
    key="kafka.catch_up_bytes",
)  # fmt: skip
ACCEPT_DELETIONS: Option[tuple[str, ...]] = Option(
    "accept-deletions", TextList("TOPIC"), (),
    "Bury deleted keys of this topic also if they are more than a tenth of its keys; may be repeated.",
    where=Where.FLAG,
)  # fmt: skip
DROP_TOMBSTONES: Option[bool] = Option(
    "drop-tombstones", Bool(), False,
    "Drop tombstones too that were older than delete.retention.ms at every kept cut, and that every archived group "
    "has read.",
    where=Where.FLAG,
)  # fmt: skip

# Kafka — Backups that are resumed, salvaged or followed
RESUME: Option[bool] = Option("resume", Bool(), False, "Resume the interrupted backup, under its id.", where=Where.FLAG)
LOG_DIRS: Option[tuple[str, ...]] = Option(
    "log-dirs", TextList("DIR,..."), (), "Log directories of stopped brokers; may be repeated.",
    where=Where.FLAG,
)  # fmt: skip
FOLLOW: Option[bool] = Option(
    "follow", Bool(), False, "Repeat the backup, round after round, until SIGINT or SIGTERM.", where=Where.FLAG
)
STANDBY: Option[bool] = Option(
    "standby", Bool(), False,
    "With --follow: one of several instances; one of them is active, the others wait.", where=Where.FLAG,
)  # fmt: skip
INSTANCE: Option[str | None] = Option(
    "instance", SourceName(), None, "With --standby: the name of this instance.", key="kafka.instance",
    default_text="the name of the host",
)  # fmt: skip
INSTANCE_ROLE: Option[str] = Option(
    "role", OneOf(("active", "passive")), "active",
    "With --standby: with passive, let another instance begin. Later, either may become active.",
    key="kafka.role",
)  # fmt: skip
COORDINATION_TOPIC: Option[str | None] = Option(
    "coordination-topic", Text("TOPIC"), None,
    "After a backup that made new generations active, send events to this topic, such as "
    "_compacted_log_backup_coordination.",
    key="kafka.coordination_topic",
)  # fmt: skip
APPLICATION: Option[str | None] = Option(
    "application", Text("NAME"), None,
    "Back up the topics of this application, which consumes and produces on the cluster, at a consistent cut.",
    key="kafka.application",
)  # fmt: skip
CHECKPOINT_TIMEOUT: Option[timedelta] = Option(
    "checkpoint-timeout", Duration(), timedelta(minutes=1),
    "With --application: the backup fails if a task takes no checkpoint within this time.",
    key="kafka.checkpoint_timeout",
)  # fmt: skip
INTERVAL: Option[timedelta] = Option(
    "interval", Duration(), timedelta(seconds=10), "With --follow: time between the starts of two rounds.",
    key="kafka.interval",
)  # fmt: skip
TAG: Option[tuple[str, ...]] = Option(
    "tag", TextList("TAG"), (), "Tag the backup, for `prune --keep-tag`; may be repeated.", where=Where.FLAG
)

# Kafka — Restores
STATE_DIR: Option[Path | None] = Option(
    "state-dir", FilePath("DIR"), None,
    "Keep plans and receipts of restores in this directory, for a read-only repository.",
    key="restore.state_dir", default_text="in the repository",
)  # fmt: skip
MAP_FILE: Option[Path | None] = Option(
    "map",
    FilePath(),
    None,
    "Write the map of source to target offsets as CSV to this file; - is stdout.",
    where=Where.FLAG,
)

RENAME: Option[tuple[str, ...]] = Option(
    "rename", TextList("OLD=NEW"), (), "New name of a topic, or s/pattern/replacement/ for many; may be repeated.",
    where=Where.FLAG,
)  # fmt: skip
PARTITIONS: Option[tuple[str, ...]] = Option(
    "partitions", TextList("[TOPIC:]0,3-5"), (), "Only these partitions; may be repeated.", where=Where.FLAG,
    default_text="all",
)  # fmt: skip
UNTIL_TIME: Option[int | None] = Option(
    "until-time", Timestamp(), None, "Cut each partition before its first record with this or a later timestamp.",
    where=Where.FLAG,
)  # fmt: skip
BY_RECORD: Option[bool] = Option(
    "by-record", Bool(), False,
    "With --until-time: leave out all records of that time or later, instead of cutting before the first.",
    where=Where.FLAG,
)  # fmt: skip
UNTIL_OFFSET: Option[tuple[str, ...]] = Option(
    "until-offset", TextList("TOPIC:P=N"), (), "Cut one partition before this offset; may be repeated.",
    where=Where.FLAG,
)  # fmt: skip

# Kafka — Imports
PARTITION_COUNT: Option[tuple[str, ...]] = Option(
    "partition-count", TextList("TOPIC=N"), (),
    "Number of partitions of a topic, if the imported archive does not record it; may be repeated.",
    where=Where.FLAG, default_text="as many as have files",
)  # fmt: skip
IMPORT_FORMAT: Option[str] = Option(
    "import-format", OneOf(("auto", "kafka-backup-v1", "oso", "avro", "parquet", "trivadis")), "auto",
    "Format of what is imported; auto recognises it by its bytes.", where=Where.FLAG, typed="format",
)  # fmt: skip
SHOW_FROM: Option[str | None] = Option(
    "show-from", Text("URL"), None, "Show records of a dataset or an archive of another tool, not of a backup.",
    where=Where.FLAG, typed="from",
)  # fmt: skip
RESTORE_FROM: Option[str | None] = Option(
    "restore-from", Text("URL"), None,
    "Restore a dataset or an archive of another tool: it is imported into a scratch repository first.",
    where=Where.FLAG, typed="from",
)  # fmt: skip
SCRATCH: Option[Path | None] = Option(
    "scratch", FilePath("DIR"), None, "Directory for the scratch repository of --from.",
    key="restore.scratch", default_text="below the cache directory",
)  # fmt: skip

# Kafka — What a restore writes, and how
REPARTITION: Option[tuple[str, ...]] = Option(
    "repartition", TextList("TOPIC=N"), (),
    "Give a topic N partitions; records are assigned by Kafka's hash of their keys; may be repeated.",
    where=Where.FLAG,
)  # fmt: skip
OFFSETS: Option[str] = Option(
    "offsets", OneOf(("auto", "preserve", "translate")), "auto",
    "Keep the original offsets, or write records without gaps and translate; auto chooses by cost and reports it.",
    key="restore.offsets",
)  # fmt: skip
ISOLATION: Option[str] = Option(
    "isolation", OneOf(("committed", "all")), "committed",
    "Which records: committed ones, or also those of aborted and open transactions.",
    where=Where.FLAG,
)  # fmt: skip
TRANSACTIONS: Option[str] = Option(
    "transactions", OneOf(("report", "whole")), "report",
    "With --until-time or --until-offset: report transactions that the cut tears, or leave them out everywhere.",
    where=Where.FLAG,
)  # fmt: skip
WHAT: Option[tuple[str, ...]] = Option(
    "what", TextList("PART,..."), (), "What to restore: data, configs, groups, acls, quotas.", where=Where.FLAG,
    default_text="data,configs,groups",
)  # fmt: skip
RESTORED_GROUPS: Option[tuple[str, ...]] = Option(
    "groups", TextList("REGEX"), (), "Groups to restore, by their whole name; may be repeated.", where=Where.FLAG,
    default_text="all with an offset in a restored topic",
)  # fmt: skip
FROM_BACKUP: Option[str | None] = Option(
    "backup", Text("ID"), None, "Use the offsets of this backup as they are.", where=Where.FLAG
)
ERASED_FROM: Option[str | None] = Option(
    "erased-from", Text("ID"), None,
    "Also offsets that the cluster has deleted since, from the archived __consumer_offsets of this backup.",
    where=Where.FLAG,
)  # fmt: skip
INTO_EXISTING: Option[bool] = Option(
    "into-existing", Bool(), False, "Append to existing topics, also when they hold records.",
    where=Where.FLAG,
)  # fmt: skip
CONFIRM_CLUSTER: Option[str | None] = Option(
    "confirm-cluster", Text("CLUSTER-ID"), None, "Confirm that the target is the cluster that was backed up.",
    where=Where.FLAG,
)  # fmt: skip
REPLICATION_FACTOR: Option[int | None] = Option(
    "replication-factor", Int(1, 32767), None, "Replication factor of new topics.", key="restore.replication_factor",
    default_text="as archived",
)  # fmt: skip
LIMIT_PRODUCE: Option[int | None] = Option(
    "limit-produce", _RATE, None, "Send at most this many bytes per second to the cluster.",
    key="restore.limit_produce", default_text="no limit",
)  # fmt: skip
NO_PROOF: Option[bool] = Option(
    "no-proof", Bool(), False, "Do not read back and compare what was restored.", where=Where.FLAG
)
KEEP_ALL: Option[bool] = Option(
    "keep-all", Bool(), False, "Leave retention off at the end, so that brokers delete no old records.",
    where=Where.FLAG,
)  # fmt: skip
TO_LOG_DIRS: Option[tuple[str, ...]] = Option(
    "to-log-dirs", TextList("DIR,..."), (),
    "Write segment files into the log directories of a stopped broker; may be repeated.", where=Where.FLAG,
)  # fmt: skip
REPLACE_RECORDS: Option[bool] = Option(
    "replace-records", Bool(), False, "With --to-log-dirs: overwrite partitions that hold records.", where=Where.FLAG
)
HERE_ONLY: Option[bool] = Option(
    "here-only", Bool(), False, "With --to-log-dirs: skip partitions that have no directory on this broker.",
    where=Where.FLAG,
)  # fmt: skip
BROKERS: Option[tuple[str, ...]] = Option(
    "brokers", TextList("ID,..."), (), "With --to-log-dirs: all brokers of the cluster, for the printed procedure.",
    where=Where.FLAG,
)  # fmt: skip
EMBEDDED: Option[bool] = Option(
    "embedded", Bool(), False, "Start a temporary server on this machine.", where=Where.FLAG
)
RESUME_RESTORE: Option[int | None] = Option(
    "resume-restore", Int(1, 10**18 - 1, "RESTORE-ID"), None, "Resume an interrupted restore.",
    where=Where.FLAG, typed="resume",
)  # fmt: skip

# Applications, backup sets, and the HTTP interface
APP_DATA: Option[str | None] = Option(
    "data", Text("DIR"), None, "Data directory of the application.", key="application.data", per_source=True
)
CLIENT_CONFIG: Option[Path | None] = Option(
    "client-config", FilePath("FILE"), None,
    "Properties of librdkafka, one name=value per line, as the application's program takes them.",
    key="kafka.client_config",
)  # fmt: skip
ON_FAILOVER: Option[str] = Option(
    "on-failover", OneOf(("fail", "retake")), "fail",
    "When a partition's leader changes before its copy is complete: fail the backup, or let the next leader copy.",
    where=Where.FLAG,
)  # fmt: skip
APP_TIMEOUT: Option[timedelta] = Option(
    "timeout", Duration(), timedelta(minutes=10), "A backup that takes longer fails.", where=Where.FLAG
)
NO_WAIT: Option[bool] = Option(
    "no-wait", Bool(), False, "End when every partition has processed its checkpoint; copies continue.",
    where=Where.FLAG,
)  # fmt: skip
SUPERSEDE: Option[bool] = Option(
    "supersede", Bool(), False, "Fail a backup that is ongoing, and take this one.", where=Where.FLAG
)
SET_MEMBERS: Option[str | None] = Option(
    "members", Text("NAME,..."), None, "Sources that are backed up under one id.", where=Where.FLAG
)
LISTEN: Option[str] = Option(
    "listen", Text("HOST:PORT"), "127.0.0.1:8470",
    "Address to listen on; port 0 takes a free port. Addresses other than loopback need TLS.",
    key="http.listen",
)  # fmt: skip
TOKEN_FILE: Option[Path] = Option(
    "token-file", FilePath("FILE"), Path("logkeep.token"),
    "Token that changes need; the first start makes it. Only its owner may read it.", key="http.token_file",
)  # fmt: skip
ALLOW_RESTORE: Option[bool] = Option(
    "allow-restore", Bool(), False,
    "Let requests restore the application in --data, whose old files are kept; else they get the plan only.",
    where=Where.FLAG,
)  # fmt: skip
SERVED_NAMES: Option[tuple[str, ...]] = Option(
    "served-name", TextList("HOST"), (), "Another host name under which clients reach the server.", key="http.names"
)
TLS_CERTIFICATE: Option[Path | None] = Option(
    "tls-certificate", FilePath("FILE"), None, "Certificate of the server, PEM.", key="http.tls_certificate"
)
TLS_KEY: Option[Path | None] = Option(
    "tls-key", FilePath("FILE"), None, "Private key of the certificate, PEM.", key="http.tls_key"
)
REPLACE_DATA: Option[bool] = Option(
    "replace", Bool(), False, "Replace the application that is there; its files or topics are kept.", where=Where.FLAG
)

# ZooKeeper — Members and backups
ZK_DATA_DIRS: Option[tuple[str, ...]] = Option(
    "data-dir", TextList("[NAME=]DIR"), (),
    "dataDir of a server, or its version-2; once for each member of an ensemble.", key="zookeeper.data_dir",
    also=("--zk-data-dir",), per_source=True,
)  # fmt: skip
ZK_LOG_DIRS: Option[tuple[str, ...]] = Option(
    "log-dir", TextList("[NAME=]DIR"), (), "dataLogDir of a server; once for each member that has one.",
    key="zookeeper.log_dir", default_text="as --data-dir", per_source=True,
)  # fmt: skip
ZK_HOSTS: Option[tuple[str, ...]] = Option(
    "zk-host", TextList("[NAME=]HOST:PORT"), (), "Client address of a server; once for each member.",
    key="zookeeper.host", default_text="no server is asked", per_source=True,
)  # fmt: skip
ADMIN_SERVER: Option[str | None] = Option(
    "admin-server", Text("[NAME=]URL"), None,
    "AdminServer of ZooKeeper 3.9, as http://localhost:8080: its snapshot instead of files. See --auth-file.",
    key="zookeeper.admin_server",
)  # fmt: skip
NEW_HISTORY: Option[bool] = Option(
    "new-history", Bool(), False, "Begin a new history, because the data was restored or replaced.", where=Where.FLAG
)
ZK_COMPRESSION: Option[str] = Option(
    "zk-compression", OneOf(("none", "gzip", "zstd")), "none", "Compression of stored files.",
    key="zookeeper.compression", typed="compression",
)  # fmt: skip
ZK_INTERVAL: Option[timedelta] = Option(
    "zk-interval", Duration(), timedelta(seconds=5), "With --follow: time between the starts of two rounds.",
    key="zookeeper.interval", typed="interval",
)  # fmt: skip
ZK_SEGMENT_BYTES: Option[int] = Option(
    "zk-segment-bytes", Size(minimum=4096, expected="a size of at least 4 KiB, such as 64MiB"), 64 << 20,
    "Merge small log objects into ones of at most this size.",
    key="zookeeper.segment_bytes", typed="segment-bytes",
)  # fmt: skip
INCLUDE_CONFIG: Option[bool] = Option(
    "include-config", Bool(), False, "Also keep zoo.cfg and similar files, without passwords.",
    key="zookeeper.include_config",
)  # fmt: skip
CONFIG_DIRS: Option[tuple[str, ...]] = Option(
    "config-dir", TextList("DIR"), (), "Directory of configuration files; may be repeated.", key="zookeeper.config_dir",
    default_text="the usual places",
)  # fmt: skip

# ZooKeeper — Restores, bundles and history
TO_ZXID: Option[int | None] = Option(
    "to-zxid", ZxidNumber(), None, "Use the tree as it was after this transaction.", where=Where.FLAG,
    default_text="the end of the backup",
)  # fmt: skip
TO_TIME: Option[int | None] = Option(
    "to-time", Timestamp(), None, "Use the tree as it was at this time, by the clocks of the servers.", where=Where.FLAG
)
SESSIONS: Option[str] = Option(
    "sessions", OneOf(("keep", "drop")), "keep", "drop leaves out sessions and their ephemeral nodes.",
    where=Where.FLAG,
)  # fmt: skip
FORM: Option[str] = Option(
    "form", OneOf(("exact", "original")), "exact",
    "exact writes one snapshot under an unused zxid; original writes the archived files as they are.", where=Where.FLAG,
)  # fmt: skip
ENSEMBLE: Option[bool] = Option(
    "ensemble",
    Bool(),
    False,
    "The server is a member of an ensemble, although it has no epoch files.",
    where=Where.FLAG,
)
MIN_EPOCH: Option[int] = Option(
    "min-epoch", Int(), 0, "Highest epoch used by members that are not named here.", where=Where.FLAG
)
BELIEVE: Option[bool] = Option(
    "believe", Bool(), False, "Continue also where nothing proves which transaction ended an epoch.", where=Where.FLAG
)
ACCEPT_MISMATCH: Option[str | None] = Option(
    "accept-mismatch", Text("REASON"), None,
    "Restore although the servers' digests contradict the tree, if nothing better exists. Kept in the receipt.",
    where=Where.FLAG,
)  # fmt: skip
DIGESTS: Option[bool] = Option(
    "digests", Bool(), False,
    "Write a digest into the snapshot, for servers with digests enabled. With digests disabled, 3.9 cannot load it.",
    where=Where.FLAG,
)  # fmt: skip
ZK_VERSION: Option[str | None] = Option(
    "zk-version", Text("VERSION"), None, "Version of the servers that will start: 3.9.5.", key="zookeeper.version",
    default_text="not known",
)  # fmt: skip
JUTE_MAXBUFFER: Option[int] = Option(
    "jute-maxbuffer", Int(1), 0xFFFFF, "jute.maxbuffer of the servers that will start.",
    key="zookeeper.jute_maxbuffer",
)  # fmt: skip
CONTINUE: Option[bool] = Option(
    "continue", Bool(), False, "Complete an interrupted restore: keep the restored data.", where=Where.FLAG
)
ROLLBACK: Option[bool] = Option(
    "rollback", Bool(), False, "Undo a restore: put the earlier data back.", where=Where.FLAG
)
RESTORE_PLAN: Option[Path | None] = Option(
    "plan", FilePath(), None, "Carry out this plan, made by `restore plan` for all members.", where=Where.FLAG
)
SURVEY_TO: Option[Path | None] = Option(
    "survey-to", FilePath(), None, "File to write the survey to.", where=Where.FLAG, typed="to",
    default_text="HOST.survey.json in the working directory",
)  # fmt: skip
PLAN_TO: Option[Path | None] = Option(
    "plan-to", FilePath(), None, "File to write the plan to.", where=Where.FLAG, typed="to",
    default_text="the plan is only shown",
)  # fmt: skip
MEMBER: Option[str | None] = Option(
    "member", Text("NAME"), None, "Member of the ensemble.", where=Where.FLAG, default_text="the only one"
)
TO_DIR: Option[Path | None] = Option(
    "to", FilePath("DIR"), None, "Directory to create the bundle in.", where=Where.FLAG
)
BUNDLE_ID: Option[str | None] = Option(
    "bundle-id", Text("ID"), None, "Name of the bundle.", where=Where.FLAG, default_text="backup-YYYYMMDD-HHMMSS"
)
CHILDREN: Option[bool] = Option("children", Bool(), False, "Include its direct children.", where=Where.FLAG)
RECURSIVE: Option[bool] = Option("recursive", Bool(), False, "Include everything below it.", where=Where.FLAG)
BELOW: Option[str] = Option("path", Text("PATH"), "/", "Only this znode and what is below it.", where=Where.FLAG)
MOST_ROWS: Option[int] = Option("limit", Int(1, 1_000_000), 1000, "Maximum number of rows to show.", where=Where.FLAG)

# SQL
SQL: Option[str | None] = Option(
    "sql", Text("QUERY"), None, "A Spark SQL query over the view `transactions`.", where=Where.FLAG
)
SQL_BACKUP: Option[str] = Option(
    "sql-backup",
    Text("ID"),
    "latest",
    "Backup to query: a number, a unique prefix of one, or `latest`.",
    where=Where.FLAG,
    typed="backup",
)
SQL_AS: Option[tuple[str, ...]] = Option(
    "sql-as",
    TextList("NAME=ID"),
    (),
    "Query another backup too, as `NAME.topic`; may be repeated.",
    where=Where.FLAG,
    typed="as",
)
SQL_FROM: Option[str | None] = Option(
    "sql-from",
    Text("URL"),
    None,
    "Query a dataset or an archive of another tool in place of a backup.",
    where=Where.FLAG,
    typed="from",
)
SQL_DECODE: Option[bool] = Option(
    "sql-decode",
    Bool(),
    False,
    "Add the columns key_json and value_json, decoded with the archived schemas.",
    where=Where.FLAG,
    typed="decode",
)
SQL_OUTPUT: Option[str] = Option(
    "sql-output",
    OneOf(("table", "csv", "jsonl", "parquet")),
    "table",
    "How to print the result.",
    where=Where.FLAG,
    typed="output",
)
SQL_LIMIT: Option[int | None] = Option(
    "sql-limit",
    Int(1),
    None,
    "Maximum number of rows.",
    where=Where.FLAG,
    typed="limit",
    default_text="1000 in a table, otherwise all",
)

# ZooKeeper — Subtrees of a running ensemble
AS_PATH: Option[str | None] = Option(
    "as", Text("PATH"), None, "Path of the subtree in the live tree.", where=Where.FLAG,
    default_text="its own",
)  # fmt: skip
DELETE_EXTRA: Option[bool] = Option(
    "delete-extra", Bool(), False, "Delete live nodes of the subtree that the backup does not have.", where=Where.FLAG
)
AUTH_FILE: Option[Path | None] = Option(
    "auth-file", FilePath(), None,
    "File with credentials, one per line: digest:USER:PASSWORD. Only its owner may read it.", key="zookeeper.auth_file",
)  # fmt: skip
SUBTREE_JOURNAL: Option[Path | None] = Option(
    "journal", FilePath(), None, "New file that records each change and the earlier state.", where=Where.FLAG,
    default_text="logkeep-subtree-TIME.journal in the working directory",
)  # fmt: skip
RESUME_SUBTREE: Option[Path | None] = Option(
    "resume-subtree", FilePath(), None, "Resume the interrupted run of this journal.",
    where=Where.FLAG, typed="resume",
)  # fmt: skip
UNDO_SUBTREE: Option[Path | None] = Option(
    "undo-subtree", FilePath(), None, "Undo what the run of this journal did.", where=Where.FLAG, typed="undo"
)
MAX_SNAPSHOT_BYTES: Option[int] = Option(
    "max-snapshot-bytes", Size(), 16 << 30, "Largest snapshot that is accepted from --admin-server, also unpacked.",
    key="zookeeper.max_snapshot_bytes",
)  # fmt: skip

# Zeebe
ZEEBE_STORE: Option[str | None] = Option(
    "zeebe-store", Text("URL"), None, "The store that Zeebe writes its backups to: a directory or s3://bucket/prefix.",
    key="zeebe.store", typed="store",
)  # fmt: skip
ZEEBE_MANAGEMENT: Option[str | None] = Option(
    "zeebe-management", Text("URL"), None, "Zeebe's management port, as http://localhost:9600.",
    key="zeebe.management", typed="management",
)  # fmt: skip
ZEEBE_TIMEOUT: Option[timedelta] = Option(
    "zeebe-timeout", Duration(), timedelta(hours=1), "A backup that Zeebe completes later than this counts as failed.",
    key="zeebe.timeout", typed="timeout",
)  # fmt: skip
ZEEBE_TARGET: Option[str | None] = Option(
    "zeebe-to",
    Text("URL"),
    None,
    "The store to write: a directory or s3://bucket/prefix.",
    where=Where.FLAG,
    typed="to",
)
ZEEBE_LAYOUT: Option[str] = Option(
    "zeebe-layout", OneOf(("auto", "s3", "files")), "auto",
    "Names of objects: s3, as in buckets of Zeebe up to 8.8, or files, as in directories of Zeebe 8.8 and later.",
    where=Where.FLAG, typed="layout", default_text="s3 for buckets, files for directories",
)  # fmt: skip

Options = tuple[Option[Any], ...]
STORE_OPTIONS: Options = (REPO, SOURCE)
RECEIPT_OPTIONS: Options = (*STORE_OPTIONS, STATE_DIR)
"""Of verbs that read or write receipts of restores."""
ENGINE_OPTIONS: Options = (ENGINE, MASTER, PARALLEL, SPARK_CONF, SPARK_SECRET)
WRITE_OPTIONS: Options = (RETRY_FOR, LEASE_TTL, PROGRESS)
GARBAGE_OPTIONS: Options = (GC_AGE, GC_INTERVAL, LEASE_TTL)
RETENTION_OPTIONS: Options = (
    KEEP_LAST, KEEP_HOURLY, KEEP_DAILY, KEEP_WEEKLY, KEEP_MONTHLY, KEEP_YEARLY, KEEP_WITHIN, KEEP_TAG, KEEP_DAYS,
    KEEP_COUNT, KEEP_MIN_COUNT, DELETE_DAMAGED,
)  # fmt: skip
TRIM_OPTIONS: Options = (SOURCE_RETENTION, TOPIC_RETENTION, GRACE, LESS_THAN_SOURCE)
KAFKA_TARGET: Options = (BOOTSTRAP_SERVERS, COMMAND_CONFIG)
TOPIC_SELECTION: Options = (TOPICS, EXCLUDE)
REGISTRY_OPTIONS: Options = (REGISTRY, REGISTRY_CONFIG)
ZK_MEMBERS: Options = (ZK_DATA_DIRS, ZK_LOG_DIRS, ZK_HOSTS)
ZK_MOMENT: Options = (TO_ZXID, TO_TIME)
"""Groups of options that several verbs take, in the order in which --help shows them."""

OPTIONS: Options = tuple(value for value in list(globals().values()) if isinstance(value, Option))

PLAIN_VARIABLES: dict[str, str] = {
    "LOGKEEP_CACHE_DIR": "Directory for caches and crash logs; default $XDG_CACHE_HOME/logkeep or ~/.cache/logkeep.",
}
"""Variables that are not options and cannot be set in a configuration file."""
