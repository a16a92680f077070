"""Declarations of `logkeep kafka dataset verify|info|reindex|prune`: options, exit codes, help."""

import click

from logkeep.cli.frame.exit_codes import STORE_EXITS
from logkeep.cli.frame.verb import Declaration
from logkeep.config.options import (
    ALL,
    LIMIT_DOWNLOAD,
    OLDER_THAN,
    PROGRESS,
    RETRY_FOR,
    SOURCE_RETENTION,
    TOPIC_SELECTION,
)

_URL = (click.Argument(["url"], metavar="URL"),)

VERIFY = Declaration(
    """Check a dataset: read every record, and compare every index with the records.

    Findings name the file and the byte. Records that an index lists and that cannot be read are damage (10), segments
    that are listed and missing are a gap (21); leading ones that are missing have expired. Everything else is a warning
    (2): the records are there, and `kafka dataset reindex` repairs the index. If a run was killed while it exchanged
    topics of a bucket (--rewrite), the exchange is completed first; it is the only thing that this command writes.
    """,
    options=(ALL, LIMIT_DOWNLOAD, RETRY_FOR, PROGRESS),
    arguments=_URL,
    exits=(2, 10, 21, 43, 50, *STORE_EXITS),
    examples=("logkeep kafka dataset verify /srv/dataset", "logkeep kafka dataset verify s3://bucket/dataset --json"),
)
INFO = Declaration(
    """Show what a dataset has: format, topics, partitions, offsets, groups. Reads no record.

    The format is recognised by the files, whichever tool wrote them.
    """,
    options=(ALL, RETRY_FOR),
    arguments=_URL,
    exits=(10, 43, 50, *STORE_EXITS),
    examples=("logkeep kafka dataset info /srv/dataset",),
)
REINDEX = Declaration(
    """Write both kinds of index of a kafka-backup-v1 dataset again from its records.

    An index that is right already is not written. One that lists records which cannot be read stays as it is: it is the
    only sign that they are lost.
    """,
    options=(LIMIT_DOWNLOAD, RETRY_FOR, PROGRESS),
    arguments=_URL,
    exits=(10, 21, 43, 50, *STORE_EXITS),
    changes=True,
    examples=("logkeep kafka dataset reindex /srv/dataset --dry-run", "logkeep kafka dataset reindex /srv/dataset"),
)
PRUNE = Declaration(
    """Delete the oldest segments of a dataset by the age of their records.

    Of each partition, whole segments go from the oldest on, as long as the largest time of a record in them is older
    than the limit: --older-than, or with --source-retention the retention.ms that was archived with each topic. The
    last segment of a partition stays, and so do compacted topics. A dataset of another tool does not say which topics
    are compacted: there only topics that --topics names are pruned.
    """,
    options=(OLDER_THAN, SOURCE_RETENTION, *TOPIC_SELECTION, LIMIT_DOWNLOAD, RETRY_FOR, PROGRESS),
    arguments=_URL,
    exits=(10, 43, 50, *STORE_EXITS),
    changes=True,
    examples=(
        "logkeep kafka dataset prune /srv/dataset --older-than 7d --dry-run",
        "logkeep kafka dataset prune s3://bucket/dataset --source-retention",
    ),
)
