"""The declarations of `logkeep app`, without the libraries that its verbs load."""

import click

from logkeep.cli.frame.verb import Declaration
from logkeep.cli.wiring import STORE_EXITS
from logkeep.config.options import (
    ALLOW_RESTORE,
    APP_DATA,
    APP_TIMEOUT,
    BACKUP_ID,
    BOOTSTRAP_SERVERS,
    CLIENT_CONFIG,
    ENGINE_OPTIONS,
    LEASE_TTL,
    LISTEN,
    NO_WAIT,
    ON_FAILOVER,
    REPLACE_DATA,
    SERVED_NAMES,
    STORE_OPTIONS,
    SUPERSEDE,
    TLS_CERTIFICATE,
    TLS_KEY,
    TOKEN_FILE,
)

_ID = click.Argument(["checkpoint"], metavar="ID")

BACKUP = Declaration(
    """Back up a running application: one consistent checkpoint over all partitions, without a pause.

    NAME is the source in the repository. The request is stored first: if the store is down, nothing is sent and the id
    stays free. Ends when the copies of all partitions are archived; with --no-wait when every partition has processed
    its checkpoint. The same --id again joins a backup that is ongoing. Name the application's --data, or
    --bootstrap-servers if its log is on Kafka.
    """,
    options=(
        *STORE_OPTIONS,
        APP_DATA,
        BOOTSTRAP_SERVERS,
        CLIENT_CONFIG,
        BACKUP_ID,
        NO_WAIT,
        SUPERSEDE,
        APP_TIMEOUT,
        ON_FAILOVER,
    ),
    arguments=(click.Argument(["name"], metavar="NAME"),),
    exits=(20, 21, 50, *STORE_EXITS),
    measured=True,
    examples=("logkeep app backup shop --data /var/lib/shop --repo /backups",),
)
STATUS = Declaration(
    """Show the state of a backup of an application: doesNotExist, ongoing, completed or failed, with the reason.

    Without an ID it is the newest one, in any state. Completes or fails the backup where its copies allow that and no
    other process did.
    """,
    options=STORE_OPTIONS,
    arguments=(click.Argument(["backup"], metavar="[ID]", default="latest"),),
    exits=(20, 50, *STORE_EXITS),
)
CHECKPOINT = Declaration(
    """Mark a checkpoint in the logs of a running application, without a copy.

    Once a later backup has archived the logs around it, `app restore` can restore it.
    """,
    options=(*STORE_OPTIONS, APP_DATA, BOOTSTRAP_SERVERS, CLIENT_CONFIG, BACKUP_ID, APP_TIMEOUT),
    arguments=(click.Argument(["name"], metavar="NAME"),),
    exits=(20, 50, *STORE_EXITS),
)
SERVE = Declaration(
    """Serve the HTTP interface to backups of an application: take, show, list, delete, and plan a restore.

    POST and DELETE need the token, on the loopback interface too. POST answers 202 once every partition has processed
    its checkpoint, before the copies are done. /openapi.json describes all operations. With --allow-restore a POST can
    restore the stopped application in --data; no request names another place. Name the application's --data, or
    --bootstrap-servers if its log is on Kafka. Ends with SIGTERM or SIGINT.
    """,
    options=(
        *STORE_OPTIONS,
        APP_DATA,
        BOOTSTRAP_SERVERS,
        CLIENT_CONFIG,
        LISTEN,
        TOKEN_FILE,
        SERVED_NAMES,
        TLS_CERTIFICATE,
        TLS_KEY,
        LEASE_TTL,
        ALLOW_RESTORE,
    ),
    arguments=(click.Argument(["name"], metavar="NAME"),),
    exits=(50, *STORE_EXITS),
    examples=("logkeep app serve shop --data /var/lib/shop --repo /backups --token-file /etc/logkeep/token",),
)
RESTORE = Declaration(
    """Restore an application to a backup or to a checkpoint between two backups.

    ID is a number, or `latest` for the newest completed backup. The application must be stopped. Logs and snapshots are
    staged first; then they are put in place so that nothing can start in between: in the directory --data, or on the
    cluster --bootstrap-servers, wherever the log was before. With --replace the old files are kept in a directory
    `before-…` beside them, old topics under their names. An interrupted restore is continued by the next one.
    """,
    options=(*STORE_OPTIONS, *ENGINE_OPTIONS, APP_DATA, BOOTSTRAP_SERVERS, CLIENT_CONFIG, REPLACE_DATA),
    arguments=(_ID,),
    exits=(10, 31, 50, *STORE_EXITS),
    changes=True,
    measured=True,
    examples=(
        "logkeep app restore 20261118120000 --data /var/lib/shop --repo /backups --source shop",
        "logkeep app restore 20261118120000 --bootstrap-servers kafka:9092 --repo /backups --source shop",
    ),
)
