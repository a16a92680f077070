"""How `--help` groups options: everyday ones first, the rest by topic. An option in no group is an everyday one."""

from collections.abc import Iterable
from typing import Any

from logkeep.config.option import Option
from logkeep.config.options import (
    ACCEPT_DELETIONS,
    ACCEPT_MISMATCH,
    ADMIN_SERVER,
    APPLICATION,
    AUTH_FILE,
    AVRO_CODEC,
    AVRO_SCHEMA,
    BACKUP_ID,
    BELIEVE,
    BROKERS,
    BY_RECORD,
    CATCH_UP_BYTES,
    CHECKPOINT_TIMEOUT,
    CLIENT_CONFIG,
    CLIENT_RACK,
    COMMAND_CONFIG,
    COMPACTED,
    COMPRESSION,
    CONFIG_DIRS,
    CONFIRM_CLUSTER,
    CONTROLLER_CONFIG,
    CONTROLLERS,
    COORDINATION_TOPIC,
    DIGESTS,
    ENGINE_OPTIONS,
    ENSEMBLE,
    ERASED_FROM,
    FORM,
    GC_AGE,
    GC_INTERVAL,
    GENERATION_DAYS,
    GRACE,
    HERE_ONLY,
    IMPORT_FORMAT,
    INCLUDE_CONFIG,
    INSTANCE,
    INSTANCE_ROLE,
    ISOLATION,
    JUTE_MAXBUFFER,
    KEEP_ALL,
    LEASE_TTL,
    LESS_THAN_SOURCE,
    LIMIT_DOWNLOAD,
    LIMIT_PRODUCE,
    LIMIT_UPLOAD,
    MAX_SNAPSHOT_BYTES,
    METRICS_FILE,
    MIN_EPOCH,
    NO_PROOF,
    OFFSETS,
    PARTITION_COUNT,
    PROGRESS,
    REGISTRY_CONFIG,
    REPARTITION,
    REPLACE_RECORDS,
    REPLICATION_FACTOR,
    RESTORE_FROM,
    RETRY_FOR,
    REWRITE,
    SCHEMAS_TOPIC,
    SCRAM_TO,
    SCRATCH,
    SEGMENT_BYTES,
    SERVED_NAMES,
    SESSIONS,
    SOURCE_RETENTION,
    STANDBY,
    STATE_DIR,
    TLS_CERTIFICATE,
    TLS_KEY,
    TO_LOG_DIRS,
    TOPIC_RETENTION,
    TRANSACTIONS,
    UNTIL_OFFSET,
    ZK_COMPRESSION,
    ZK_SEGMENT_BYTES,
    ZK_VERSION,
    Options,
)

HELP_GROUPS: dict[str, Options] = {
    "Record options": (
        REPARTITION, BY_RECORD, UNTIL_OFFSET, TRANSACTIONS, OFFSETS, ISOLATION, ERASED_FROM, KEEP_ALL, NO_PROOF,
    ),
    "Tree options": (SESSIONS, FORM, BELIEVE, ACCEPT_MISMATCH, DIGESTS),
    "Cluster options": (
        COMMAND_CONFIG, CLIENT_CONFIG, CLIENT_RACK, SCRAM_TO, CONTROLLERS, CONTROLLER_CONFIG, REGISTRY_CONFIG,
        SCHEMAS_TOPIC, REPLICATION_FACTOR, CONFIRM_CLUSTER, ADMIN_SERVER, AUTH_FILE, MAX_SNAPSHOT_BYTES, INCLUDE_CONFIG,
        CONFIG_DIRS, ENSEMBLE, MIN_EPOCH, ZK_VERSION, JUTE_MAXBUFFER,
    ),
    "Options for files of a stopped broker": (TO_LOG_DIRS, REPLACE_RECORDS, HERE_ONLY, BROKERS),
    "Options for compacted topics": (COMPACTED, GENERATION_DAYS, CATCH_UP_BYTES, ACCEPT_DELETIONS),
    "Options for two instances": (STANDBY, INSTANCE, INSTANCE_ROLE, COORDINATION_TOPIC),
    "Options for applications": (APPLICATION, CHECKPOINT_TIMEOUT),
    "Options for topics that keep less": (SOURCE_RETENTION, TOPIC_RETENTION, GRACE, LESS_THAN_SOURCE),
    "Options for datasets": (
        RESTORE_FROM, IMPORT_FORMAT, PARTITION_COUNT, SCRATCH, REWRITE, AVRO_SCHEMA, AVRO_CODEC,
    ),
    "Options for TLS": (SERVED_NAMES, TLS_CERTIFICATE, TLS_KEY),
    "Engine options": ENGINE_OPTIONS,
    "Transfer and storage options": (
        LIMIT_PRODUCE, LIMIT_DOWNLOAD, LIMIT_UPLOAD, RETRY_FOR, SEGMENT_BYTES, ZK_SEGMENT_BYTES, COMPRESSION,
        ZK_COMPRESSION, BACKUP_ID, LEASE_TTL, GC_AGE, GC_INTERVAL, STATE_DIR, METRICS_FILE, PROGRESS,
    ),
}  # fmt: skip
"""In the order in which `--help` shows them, below the everyday options."""


def by_group(options: Iterable[Option[Any]]) -> dict[str, list[Option[Any]]]:
    """The options by title, everyday ones first, each group in the given order. Empty groups are left out."""
    title_of = {option.name: title for title, group in HELP_GROUPS.items() for option in group}
    groups: dict[str, list[Option[Any]]] = {title: [] for title in ("Options", *HELP_GROUPS)}
    for option in options:
        groups[title_of.get(option.name, "Options")].append(option)
    return {title: found for title, found in groups.items() if found}
