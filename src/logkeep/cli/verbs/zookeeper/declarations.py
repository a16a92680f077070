"""Declarations of the verbs of `logkeep zookeeper` but restores: options, exit codes, help."""

import click

from logkeep.cli.frame.exit_codes import STORE_EXITS
from logkeep.cli.frame.verb import Declaration
from logkeep.config.options import (
    ADMIN_SERVER,
    AUTH_FILE,
    BACKUP_ID,
    BELIEVE,
    BELOW,
    BUNDLE_ID,
    CHILDREN,
    CONFIG_DIRS,
    ENGINE_OPTIONS,
    FOLLOW,
    INCLUDE_CONFIG,
    LEASE_TTL,
    LIMIT_DOWNLOAD,
    LIMIT_UPLOAD,
    MAX_SNAPSHOT_BYTES,
    MEMBER,
    MOST_ROWS,
    NEW_HISTORY,
    PROGRESS,
    RECURSIVE,
    SQL,
    STORE_OPTIONS,
    TAG,
    TO_DIR,
    WRITE_OPTIONS,
    ZK_COMPRESSION,
    ZK_INTERVAL,
    ZK_MEMBERS,
    ZK_SEGMENT_BYTES,
)

BACKUP = Declaration(
    """Back up ZooKeeper from the files of one server or of several, while they run.

    Snapshots are copied first, then the logs up to the last record that the server has committed, repeated until the
    newest snapshot is covered. Only used bytes are copied, and only what earlier backups do not have. A run proves
    that the directories continue what is archived; restored data, or another ensemble, ends with 31 unless
    --new-history confirms it. Transactions that no file has any more end with 21. Where no server answers, the newest
    transactions are archived and labelled unproven, and the run ends with 2.

    Without access to the disks, --admin-server requests a snapshot from a 3.9 server. It is the tree of one
    transaction if its digest proves that; under load it is fuzzy, a finding says so, and the run ends with 2.

    With --follow it repeats, round after round, until SIGTERM or SIGINT: the first signal completes the round, a
    second one aborts it. A round with nothing new commits nothing. From time to time the small objects of rounds are
    merged, as `zookeeper optimize` does.
    """,
    options=(
        *STORE_OPTIONS,
        *ZK_MEMBERS,
        ADMIN_SERVER,
        AUTH_FILE,
        MAX_SNAPSHOT_BYTES,
        NEW_HISTORY,
        ZK_COMPRESSION,
        INCLUDE_CONFIG,
        CONFIG_DIRS,
        BACKUP_ID,
        TAG,
        FOLLOW,
        ZK_INTERVAL,
        ZK_SEGMENT_BYTES,
        *ENGINE_OPTIONS,
        LIMIT_UPLOAD,
        *WRITE_OPTIONS,
    ),
    exits=(2, 10, 20, 21, 31, 50, *STORE_EXITS),
    changes=True,
    measured=True,
    examples=(
        "logkeep zookeeper backup --data-dir /var/lib/zookeeper --zk-host localhost:2181 -r s3://bucket/logkeep",
        "logkeep zookeeper backup --data-dir zk1=/data/zk1 --data-dir zk2=/data/zk2 --zk-host zk1=zk1:2181 "
        "--zk-host zk2=zk2:2181",
        "logkeep zookeeper backup --data-dir /var/lib/zookeeper --zk-host localhost:2181 --follow --interval 5s",
        "logkeep zookeeper backup --admin-server http://localhost:8080 --auth-file /etc/logkeep/zk-admin",
    ),
)

EXPORT = Declaration(
    """Write one member's files of a backup as a bundle, which `zkbackup` reads.

    Every object is checked by its checksum, and the uncompressed bytes do not change. The bundle gets its name when it
    is complete. The exit code is that of the backup itself.
    """,
    options=(*STORE_OPTIONS, TO_DIR, MEMBER, BUNDLE_ID, ZK_COMPRESSION, *ENGINE_OPTIONS, LIMIT_DOWNLOAD, PROGRESS),
    arguments=(click.Argument(["backup"], metavar="[ID]", default="latest"),),
    exits=(2, 10, 20, 21, 50, *STORE_EXITS),
    examples=("logkeep zookeeper export latest --to /backups", "logkeep zookeeper export 20261116 --member 2 --to ."),
)

IMPORT = Declaration(
    """Import a bundle into a repository, as the next backup of its source.

    Its files get the same checks as those of a server: it must continue what is archived, unless --new-history is
    given. The bundle's time becomes the id unless later backups exist; its name becomes a tag.
    """,
    options=(
        *STORE_OPTIONS,
        MEMBER,
        NEW_HISTORY,
        ZK_COMPRESSION,
        BACKUP_ID,
        TAG,
        *ENGINE_OPTIONS,
        LIMIT_UPLOAD,
        LEASE_TTL,
        PROGRESS,
    ),
    arguments=(click.Argument(["bundle"], metavar="DIR"),),
    exits=(2, 10, 20, 21, 31, 50, *STORE_EXITS),
    examples=("logkeep zookeeper import /backups/backup-20261116-091500 -r s3://bucket/logkeep",),
)

DIFF = Declaration(
    """Compare two archived trees: two backups, two transactions or two members.

    A and B (default: latest) are ids of backups or directories of bundles, with @ZXID for the tree after that
    transaction (default: the end) and, after an id, :MEMBER for one member's files. When both come from the same
    archived bytes and end with the same digest, they are equal without a replay; otherwise both trees are replayed and
    compared: data, ACL, every field of stat. What servers change without a transaction is not compared. A tree after an
    unproven end of an epoch is compared only with --believe. A path that is in neither tree is refused.
    """,
    options=(*STORE_OPTIONS, BELOW, BELIEVE, MOST_ROWS, LIMIT_DOWNLOAD),
    arguments=(click.Argument(["before"], metavar="A"), click.Argument(["after"], metavar="[B]", default="latest")),
    exits=(10, 30, 50, *STORE_EXITS),
    examples=(
        "logkeep zookeeper diff 20261115 latest",
        "logkeep zookeeper diff latest@0x500000001 latest --path /app",
        "logkeep zookeeper diff latest:zk1@0x50000001f latest:zk2@0x50000001f",
        "logkeep zookeeper diff /backups/monday /backups/tuesday",
    ),
)

HISTORY = Declaration(
    """Show which sessions created, changed and deleted a znode, and when.

    Every applied change is one line: its transaction, the time on the leader's clock, the session that requested it,
    and the version and size of the data after it. Instead of an id the directory of a bundle can be given. Where
    several members have a log, the best proven one is read. The last line shows which transactions were read. After
    damage it continues, with another member's log if there is one; transactions that cannot be read, or that no log
    has, are named, and it ends with 10. What was proposed and never committed is left out, and named.
    """,
    options=(*STORE_OPTIONS, CHILDREN, RECURSIVE, MEMBER, MOST_ROWS, *ENGINE_OPTIONS, LIMIT_DOWNLOAD, PROGRESS),
    arguments=(click.Argument(["path"], metavar="PATH"), click.Argument(["backup"], metavar="[ID]", default="latest")),
    exits=(10, 20, 50, *STORE_EXITS),
    examples=(
        "logkeep zookeeper history /app/config",
        "logkeep zookeeper history /app --recursive --limit 50",
        "logkeep zookeeper history /app/leader /backups/backup-20261116-091500",
    ),
)

LOG = Declaration(
    """Query archived transactions with SQL.

    The view `transactions` has one row per change. A multi has one row per part (txn is multi); if one part failed,
    none has `applied`. The end of a session is one row, and one more for each ephemeral node that it deleted, where the
    server wrote their names (3.6 and later). `zxid` is a number: hex(zxid) shows it as ZooKeeper does. Needs Spark,
    which reads one log per task. Instead of an id the directory of a bundle can be given. Where logs are damaged, the
    query sees what can be read; transactions that cannot be read, or that no log has, are named, and it ends with 10.
    What was proposed and never committed is left out, and named.
    """,
    options=(*STORE_OPTIONS, SQL, MEMBER, MOST_ROWS, *ENGINE_OPTIONS, LIMIT_DOWNLOAD),
    arguments=(click.Argument(["backup"], metavar="[ID]", default="latest"),),
    exits=(10, 20, 50, *STORE_EXITS),
    examples=(
        "Who deleted it:",
        "  logkeep zookeeper log --sql \"SELECT time, session, txn, path FROM transactions WHERE op LIKE 'delete%'"
        " AND applied AND path LIKE '/app%'\"",
        "The hottest paths:",
        '  logkeep zookeeper log --sql "SELECT path, count(*) AS changes FROM transactions WHERE applied'
        ' GROUP BY path ORDER BY changes DESC LIMIT 20"',
        "The largest writers:",
        '  logkeep zookeeper log --sql "SELECT session, sum(data_bytes) AS bytes FROM transactions WHERE applied'
        ' GROUP BY session ORDER BY bytes DESC LIMIT 20"',
        "How sessions come and go:",
        "  logkeep zookeeper log --sql \"SELECT date_trunc('HOUR', time) AS hour,"
        " count_if(op = 'createSession') AS opened, count_if(op = 'closeSession') AS closed"
        ' FROM transactions GROUP BY hour ORDER BY hour"',
    ),
)
