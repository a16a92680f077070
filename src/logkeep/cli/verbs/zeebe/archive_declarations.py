"""Declarations of `logkeep zeebe backup`, `import` and `export`."""

import click

from logkeep.cli.frame.exit_codes import STORE_EXITS
from logkeep.cli.frame.verb import Declaration
from logkeep.config.options import (
    ALL,
    BACKUP_ID,
    ENGINE_OPTIONS,
    LIMIT_DOWNLOAD,
    LIMIT_UPLOAD,
    PROGRESS,
    RETRY_FOR,
    STORE_OPTIONS,
    TAG,
    WRITE_OPTIONS,
    ZEEBE_LAYOUT,
    ZEEBE_MANAGEMENT,
    ZEEBE_STORE,
    ZEEBE_TARGET,
    ZEEBE_TIMEOUT,
)

BACKUP = Declaration(
    """Let Zeebe back itself up, follow it to the end, and verify what it stored.

    Asks Zeebe at its management port for a backup, waits until every partition is completed, and then verifies it
    like `zeebe verify`, in this process. Without --id it chooses an id larger than all that Zeebe and its store have.
    An id that the store has already is refused before Zeebe is asked, because Zeebe would report the old backup as the
    new one. A backup that Zeebe accepted and of which nothing is stored, because its store was down, is reported as
    failed, and Zeebe never accepts its id again.
    """,
    options=(
        ZEEBE_MANAGEMENT,
        ZEEBE_STORE,
        BACKUP_ID,
        ZEEBE_TIMEOUT,
        ALL,
        LIMIT_DOWNLOAD,
        RETRY_FOR,
        PROGRESS,
    ),
    exits=(2, 10, 20, *STORE_EXITS),
    examples=(
        "logkeep zeebe backup --management http://localhost:9600 --store s3://zeebe-backups",
        "logkeep zeebe backup --management http://localhost:9600 --store s3://zeebe-backups --id 42 --timeout 10m",
    ),
)
IMPORT = Declaration(
    """Import a backup of Zeebe into a repository: logs up to its checkpoint, and only what is not archived yet.

    ID is the backup's number in --store, or `latest`. It is verified completely before anything is written, and a
    damaged one is refused. Logs end at the checkpoint, unlike the whole preallocated files that Zeebe stores. Log
    entries and state files that the backup before has are not stored again. The backup has Zeebe's id, or that of --id.
    An import that was interrupted is continued by the next one. Zeebe's store is never changed.
    """,
    options=(
        *STORE_OPTIONS,
        ZEEBE_STORE,
        BACKUP_ID,
        TAG,
        *ENGINE_OPTIONS,
        LIMIT_UPLOAD,
        LIMIT_DOWNLOAD,
        *WRITE_OPTIONS,
    ),
    arguments=(click.Argument(["stored"], metavar="[ID]", default="latest"),),
    exits=(2, 10, 20, 43, 50, *STORE_EXITS),
    examples=(
        "logkeep zeebe import --store s3://zeebe-backups -r s3://bucket/logkeep --source zeebe",
        "logkeep zeebe import 20 --store /srv/zeebe-backups -r /srv/logkeep",
    ),
)
EXPORT = Declaration(
    """Write a backup into a store from which Zeebe's own `restore` restores it.

    ID is a number, a unique prefix of one, or `latest`. The logs in it end at their checkpoints: Zeebe before 8.8 loses
    commands when it restores logs that do not. Manifests are written last, so an interrupted export is no backup for
    Zeebe, and running it again completes it. Afterwards everything is read back and verified. A target with other
    objects under this id is refused (31).
    """,
    options=(
        *STORE_OPTIONS,
        ZEEBE_TARGET,
        ZEEBE_LAYOUT,
        ALL,
        *ENGINE_OPTIONS,
        LIMIT_UPLOAD,
        LIMIT_DOWNLOAD,
        RETRY_FOR,
        PROGRESS,
    ),
    arguments=(click.Argument(["backup"], metavar="[ID]", default="latest"),),
    exits=(2, 10, 20, 31, 43, *STORE_EXITS),
    examples=("logkeep zeebe export latest --source zeebe --to s3://zeebe-restore",),
)
