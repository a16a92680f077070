"""The declaration of `logkeep kafka import`."""

import click

from logkeep.cli.frame.exit_codes import STORE_EXITS
from logkeep.cli.frame.verb import Declaration
from logkeep.config.options import (
    ALLOW_GAPS,
    BACKUP_ID,
    ENGINE_OPTIONS,
    IMPORT_FORMAT,
    INTERNAL,
    LIMIT_DOWNLOAD,
    LIMIT_UPLOAD,
    PARTITION_COUNT,
    SEGMENT_BYTES,
    STORE_OPTIONS,
    TAG,
    TOPIC_SELECTION,
    WRITE_OPTIONS,
)

IMPORT = Declaration(
    """Import a dataset or an archive of another backup tool into a repository.

    URL is a directory or a bucket, recognised by its bytes. It is read completely before anything is written, and never
    changed. Its records become a backup of a source of its own, with their offsets and holes, so `verify`, `list`,
    `kafka restore` and `prune` work as on any other. Run again, it archives only what is new; records that are archived
    already must be equal, otherwise the run ends with 31. What the tool could not archive is reported with counts and
    the run ends with 2; records that were there and are missing are a gap, and it ends with 21.
    """,
    options=(
        *STORE_OPTIONS,
        IMPORT_FORMAT,
        *TOPIC_SELECTION,
        INTERNAL,
        PARTITION_COUNT,
        BACKUP_ID,
        SEGMENT_BYTES,
        ALLOW_GAPS,
        TAG,
        *ENGINE_OPTIONS,
        LIMIT_UPLOAD,
        LIMIT_DOWNLOAD,
        *WRITE_OPTIONS,
    ),
    arguments=(click.Argument(["url"], metavar="URL"),),
    exits=(2, 10, 20, 21, 31, 43, 50, *STORE_EXITS),
    changes=True,
    measured=True,
    examples=(
        "logkeep kafka import /backups/kafka-backup -r s3://bucket/logkeep --source old-prod",
        "logkeep kafka import s3://old-backups/nightly --partition-count orders=12 --dry-run",
    ),
)
