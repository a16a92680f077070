"""Declarations of `logkeep zeebe …`: options, exit codes, help."""

import click

from logkeep.cli.frame.exit_codes import STORE_EXITS
from logkeep.cli.frame.verb import Declaration
from logkeep.config.options import ALL, ENGINE_OPTIONS, LIMIT_DOWNLOAD, PROGRESS, RETRY_FOR, ZEEBE_STORE

LIST = Declaration(
    """List the backups that Zeebe stored, with the state of each.

    Reads manifests only. The state is the one that Zeebe reports: that of the best copy of each partition, together.
    Zeebe never reads stored files again, so `completed` says nothing about them: `zeebe verify` does.
    """,
    options=(ZEEBE_STORE, ALL, RETRY_FOR),
    exits=(2, 10, *STORE_EXITS),
    examples=("logkeep zeebe list --store s3://zeebe-backups", "logkeep zeebe list --store /srv/zeebe-backups --json"),
)
VERIFY = Declaration(
    """Verify a backup that Zeebe stored: every file, and that its cut is consistent.

    ID is the backup's number, or `latest` for the newest completed one. Of every completed copy it checks that all
    files are there, every CRC, index and position of the log, that the checkpoint is where the manifest says, and every
    checksum of the snapshot. Then it compares the partitions: a command inside the backup whose cause is outside makes
    it inconsistent. Commands of a kind that it does not know are reported as unchecked. Nothing is changed.
    """,
    options=(ZEEBE_STORE, ALL, *ENGINE_OPTIONS, LIMIT_DOWNLOAD, RETRY_FOR, PROGRESS),
    arguments=(click.Argument(["stored"], metavar="[ID]", default="latest"),),
    exits=(2, 10, 20, *STORE_EXITS),
    examples=(
        "logkeep zeebe verify --store s3://zeebe-backups",
        "logkeep zeebe verify 20 --store /srv/zeebe-backups --json",
    ),
)
