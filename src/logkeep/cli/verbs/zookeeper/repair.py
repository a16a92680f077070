"""`logkeep zookeeper repair`: repair a backup with damaged objects."""

import click

from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.verbs.zookeeper.repair_report import ZooKeeperRepairReport, repair_code, repair_text
from logkeep.cli.wiring import STORE_EXITS, chosen_source
from logkeep.config.options import (
    ACCEPT_LOSS,
    STORE_OPTIONS,
    WRITE_OPTIONS,
    ZK_MEMBERS,
)
from logkeep.kinds import ZOOKEEPER, require_kind
from logkeep.model.ids import BackupId
from logkeep.reports.backups import read_source


@verb(
    report=ZooKeeperRepairReport,
    text=repair_text,
    options=(*STORE_OPTIONS, *ZK_MEMBERS, ACCEPT_LOSS, *WRITE_OPTIONS),
    arguments=(click.Argument(["backup"], metavar="[ID]", default="latest"),),
    exits=(2, 10, 20, 50, *STORE_EXITS),
    exit_code=repair_code,
    changes=True,
    examples=(
        "logkeep zookeeper repair --dry-run",
        "logkeep zookeeper repair latest --data-dir zk2=/data/zk2",
        "logkeep zookeeper repair 20261116031500 --accept-loss --yes",
    ),
)
def repair(run: Run, backup: str) -> ZooKeeperRepairReport:
    """Repair the damaged objects of a backup, and name what is lost.

    Every object is read. Lost records are copied, byte for byte, from another member, another backup of the source, or
    a server's directories (--data-dir), if these agree with the damaged log in all common records. Bytes after the last
    record are removed. Records without any copy are reported as lost, and their object stays as it is; with
    --accept-loss the good parts around them become separate logs, and snapshots without a copy are no longer used. New
    objects are written beside the damaged ones and replace them in all backups; the damaged ones stay until those
    backups are pruned. Then everything is verified again.
    """
    place = chosen_source(run)
    require_kind(place, ZOOKEEPER)
    backup_id = BackupId(read_source(place, run.clock()).completed(backup).id)
    from logkeep.cli.verbs.zookeeper.repair_run import repair_backup  # noqa: PLC0415 - numba is only needed here

    return repair_backup(run, place, backup_id)
