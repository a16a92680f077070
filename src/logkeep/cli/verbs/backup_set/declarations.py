"""The declarations of `logkeep backup-set`, without the libraries that its verbs load."""

import click

from logkeep.cli.frame.verb import Declaration
from logkeep.cli.wiring import STORE_EXITS
from logkeep.config.options import (
    ALLOW_GAPS,
    APP_DATA,
    APP_TIMEOUT,
    BACKUP_ID,
    ENGINE_OPTIONS,
    KAFKA_TARGET,
    REPO,
    SET_MEMBERS,
    TAG,
    WRITE_OPTIONS,
    ZK_MEMBERS,
)

TAKE = Declaration(
    """Back up several sources under one id: applications, Kafka clusters, ZooKeeper ensembles.

    All members are previewed first; what one of them refuses is refused before anything is taken. Applications are
    captured first, so that the backups of the systems they use have all that they had reported. Each backup is an
    ordinary one of its source. If a member fails, no further one is begun, the set ends with 20, and the backups that
    exist stay. Settings of one member are below `sources.NAME` of the configuration file; flags are for all members.
    """,
    options=(
        REPO,
        SET_MEMBERS,
        BACKUP_ID,
        APP_DATA,
        APP_TIMEOUT,
        *KAFKA_TARGET,
        *ZK_MEMBERS,
        TAG,
        ALLOW_GAPS,
        *ENGINE_OPTIONS,
        *WRITE_OPTIONS,
    ),
    exits=(2, 10, 20, 21, 31, 50, *STORE_EXITS),
    changes=True,
    measured=True,
    examples=(
        "logkeep backup-set take --members shop,kafka-prod,zk-prod",
        "logkeep backup-set take --members shop,zk-prod --data /var/lib/shop --data-dir /var/lib/zookeeper -n",
    ),
)
STATUS = Declaration(
    """Show a backup set: the state of each member, the certificate of the application, and how to restore it.

    ID is a number, a unique prefix of one, or `latest`, the newest set. A set is completed if all of its members are.
    The command ends with 20 if a member failed or was never begun.
    """,
    options=(REPO,),
    arguments=(click.Argument(["backup"], metavar="[ID]", default="latest"),),
    exits=(20, *STORE_EXITS),
)
