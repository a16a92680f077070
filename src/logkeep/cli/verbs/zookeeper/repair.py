"""`logkeep zookeeper repair`: what can honestly be made of a backup with damaged objects."""

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
    """Mend a backup of which objects are damaged, as far as that can honestly be done.

    Every object is read. Records that are lost are taken, byte for byte, from another member, from another backup of
    the source, or from a server's directories (--data-dir): from whoever agrees with the damaged log wherever both have
    anything. Bytes behind the last record are trimmed. What nobody has is named as lost, and left as it is; with
    --accept-loss the good parts around it become logs of their own, and snapshots that nobody has are not used any
    more. New objects are written beside the damaged ones and serve all backups that need them; the damaged ones stay
    until those are pruned. Then everything is verified again.
    """
    place = chosen_source(run)
    require_kind(place, ZOOKEEPER)
    backup_id = BackupId(read_source(place, run.clock()).completed(backup).id)
    from logkeep.cli.verbs.zookeeper.repair_run import mend  # noqa: PLC0415 - numba is only needed here

    return mend(run, place, backup_id)
