"""Declarations of the verbs that restore ZooKeeper: options, exit codes, help."""

import click

from logkeep.cli.frame.exit_codes import STORE_EXITS
from logkeep.cli.frame.verb import Declaration
from logkeep.config.options import (
    ACCEPT_MISMATCH,
    AS_PATH,
    AUTH_FILE,
    BELIEVE,
    CONTINUE,
    DELETE_EXTRA,
    DIGESTS,
    ENSEMBLE,
    FORM,
    JUTE_MAXBUFFER,
    LIMIT_DOWNLOAD,
    MIN_EPOCH,
    PLAN_TO,
    PROGRESS,
    RECEIPT_OPTIONS,
    RESTORE_PLAN,
    RESUME_SUBTREE,
    ROLLBACK,
    SESSIONS,
    STORE_OPTIONS,
    SUBTREE_JOURNAL,
    SURVEY_TO,
    UNDO_SUBTREE,
    ZK_HOSTS,
    ZK_MEMBERS,
    ZK_MOMENT,
    ZK_VERSION,
)

RESTORE = Declaration(
    """Replace the data of stopped servers by the tree of a backup.

    By default the tree at the end of the backup is restored; --to-zxid and --to-time choose another transaction. One
    that cannot be proven is refused with a list of those that can. Every byte is read and checked, all transactions are
    replayed, and every digest that the servers wrote must match. Earlier data is kept beside the new data. Give all
    members of an ensemble: they get one epoch above every epoch in use. For members on several hosts, `restore survey`
    and `restore plan` make one plan, which every host carries out with --plan. An interrupted restore is completed with
    --continue or undone with --rollback, which need no repository.
    """,
    options=(
        *RECEIPT_OPTIONS,
        *ZK_MEMBERS,
        RESTORE_PLAN,
        *ZK_MOMENT,
        SESSIONS,
        FORM,
        ENSEMBLE,
        MIN_EPOCH,
        BELIEVE,
        ACCEPT_MISMATCH,
        ZK_VERSION,
        DIGESTS,
        JUTE_MAXBUFFER,
        CONTINUE,
        ROLLBACK,
        LIMIT_DOWNLOAD,
        PROGRESS,
    ),
    arguments=(click.Argument(["backup"], metavar="[ID]", required=False),),
    exits=(2, 10, 30, 31, 50, *STORE_EXITS),
    changes=True,
    measured=True,
    examples=(
        "logkeep zookeeper restore latest --data-dir /var/lib/zookeeper --dry-run",
        "logkeep zookeeper restore latest --to-time 2026-11-16T02:59:00Z --data-dir /var/lib/zookeeper",
        "logkeep zookeeper restore latest --data-dir zk1=/data/zk1 --data-dir zk2=/data/zk2 --data-dir zk3=/data/zk3",
        "logkeep zookeeper restore --plan plan.json --data-dir /var/lib/zookeeper",
        "logkeep zookeeper restore --rollback --data-dir /var/lib/zookeeper",
    ),
)

SURVEY = Declaration(
    """Record the state of the servers on this host, as input for `restore plan`.

    The first of three steps: stop all members, and survey every host; make one plan from all surveys with
    `restore plan`; carry it out on every host with `restore --plan`. Only the survey is written, and no repository is
    needed. A survey of a running server ends with 2: no plan can be made from it.
    """,
    options=(*ZK_MEMBERS, SURVEY_TO),
    exits=(2, 10, 30, 31, 52),
    examples=(
        "logkeep zookeeper restore survey --data-dir /var/lib/zookeeper --zk-host localhost:2181",
        "logkeep zookeeper restore survey --data-dir /var/lib/zookeeper --log-dir /var/lib/zklog --to zk1.survey.json",
    ),
)

PLAN = Declaration(
    """Make one restore plan for all members of an ensemble from the surveys of their hosts.

    All members get the same tree, and an epoch above every epoch in use: in the backup, in their directories, by
    running servers, and above --min-epoch. A forgotten member with its old data then cannot win an election. Without
    --to the plan is only shown. No plan is written from a survey that is older than a day, or of a running server.
    Each host carries it out with `restore --plan`, which refuses if the files are not those of the survey.
    """,
    options=(
        *STORE_OPTIONS,
        *ZK_MOMENT,
        SESSIONS,
        FORM,
        MIN_EPOCH,
        BELIEVE,
        ACCEPT_MISMATCH,
        ZK_VERSION,
        JUTE_MAXBUFFER,
        PLAN_TO,
        LIMIT_DOWNLOAD,
        PROGRESS,
    ),
    arguments=(
        click.Argument(["backup"], metavar="ID"),
        click.Argument(["surveys"], metavar="SURVEY...", nargs=-1, required=True),
    ),
    exits=(10, 30, 31, 50, *STORE_EXITS),
    examples=(
        "logkeep zookeeper restore plan latest zk1.survey.json zk2.survey.json zk3.survey.json --to plan.json",
        "logkeep zookeeper restore plan latest *.survey.json --to-time 2026-11-16T02:59:00Z",
    ),
)

RESTORE_SUBTREE = Declaration(
    """Restore one subtree of a backup into a running ensemble.

    Differences are planned as creates and sets; --delete-extra adds deletes. Every change names the version that it
    expects, changes are sent as multis, which ZooKeeper applies completely or not at all, and ACLs are set last. A
    change by another client stops the run. The journal is written before the first change: --resume continues an
    interrupted run, and --undo undoes one; both need no repository, and update its receipt if one is given. /zookeeper
    and ephemeral nodes are left out. The receipt says what was written, and where the journal is.
    """,
    options=(
        *RECEIPT_OPTIONS,
        ZK_HOSTS,
        *ZK_MOMENT,
        AS_PATH,
        DELETE_EXTRA,
        AUTH_FILE,
        BELIEVE,
        JUTE_MAXBUFFER,
        SUBTREE_JOURNAL,
        RESUME_SUBTREE,
        UNDO_SUBTREE,
        LIMIT_DOWNLOAD,
    ),
    arguments=(
        click.Argument(["backup"], metavar="[ID]", required=False),
        click.Argument(["path"], metavar="[PATH]", required=False),
    ),
    exits=(2, 10, 30, 31, 50, *STORE_EXITS),
    changes=True,
    examples=(
        "logkeep zookeeper restore-subtree latest /shop --zk-host zk1:2181 --dry-run",
        "logkeep zookeeper restore-subtree latest /shop --as /shop-of-yesterday --zk-host zk1:2181",
        "logkeep zookeeper restore-subtree --undo logkeep-subtree-20261116030000-1f2e3d4c.journal",
    ),
)
