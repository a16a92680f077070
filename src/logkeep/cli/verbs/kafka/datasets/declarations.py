"""Declarations of the verbs about datasets: options, exit codes, help."""

import click

from logkeep.cli.frame.exit_codes import STORE_EXITS
from logkeep.cli.frame.verb import Declaration
from logkeep.config.options import (
    ALLOW_GAPS,
    AVRO_CODEC,
    AVRO_SCHEMA,
    DATASET_FORMAT,
    DATASET_URL,
    ENGINE_OPTIONS,
    FOLLOW,
    INTERNAL,
    INTERVAL,
    ISOLATION,
    LIMIT_DOWNLOAD,
    LIMIT_UPLOAD,
    PARTITIONS,
    PROGRESS,
    RETRY_FOR,
    REWRITE,
    SEGMENT_BYTES,
    STORE_OPTIONS,
    TOPIC_SELECTION,
)

EXPORT = Declaration(
    """Write the records of a backup as a dataset: files in a format that other tools read.

    A dataset is a directory or a prefix of a bucket, complete by itself. It has what a consumer would have read, up to
    the first transaction that was open at the cut, and the offsets of groups. A later run continues where the dataset
    ends: its own last record is the progress. Offsets that the backup no longer has are a gap: the run continues after
    it and ends with 21.

    Of a compacted topic a dataset may keep a key that was deleted at the source. Where that is possible the run ends
    with 2; --rewrite TOPIC writes the topic anew and replaces the old one.

    With --follow each round exports what the newest backup has by then. `kafka backup --format` writes the same from a
    cluster, without a repository.
    """,
    options=(
        *STORE_OPTIONS,
        DATASET_FORMAT,
        DATASET_URL,
        *TOPIC_SELECTION,
        INTERNAL,
        PARTITIONS,
        ISOLATION,
        REWRITE,
        AVRO_SCHEMA,
        AVRO_CODEC,
        ALLOW_GAPS,
        FOLLOW,
        INTERVAL,
        SEGMENT_BYTES,
        *ENGINE_OPTIONS,
        LIMIT_DOWNLOAD,
        LIMIT_UPLOAD,
        RETRY_FOR,
        PROGRESS,
    ),
    arguments=(click.Argument(["backup"], metavar="[ID]", default="latest"),),
    exits=(2, 10, 20, 21, 31, 50, *STORE_EXITS),
    changes=True,
    examples=(
        "logkeep kafka export latest --format kafka-backup-v1 --to /srv/dataset",
        "logkeep kafka export --format kafka-backup-v1 --to s3://bucket/dataset --topics 'orders.*' --dry-run",
        "logkeep kafka export --format parquet --to /srv/tables --follow --interval 10m",
    ),
)
