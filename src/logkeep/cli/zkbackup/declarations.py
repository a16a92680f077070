"""Commands of zkbackup that load numpy and clients: options, exit codes, help. Their work is loaded when they run."""

from logkeep.cli.zkbackup.command import ZkCommand, late_command
from logkeep.cli.zkbackup.metrics import backup_failed, restore_failed
from logkeep.cli.zkbackup.options import (
    ACCEPT_MISMATCH,
    AUTO_REPAIR,
    BACKUP_DIR,
    BACKUP_ID,
    BELIEVE,
    COMPRESSION,
    COMPRESSION_LEVEL,
    CONCURRENT_COPIES,
    CONFIG_DIR,
    CONTINUE,
    COPY_BUFFER_SIZE,
    DRY_RUN,
    ENSEMBLE,
    FIX,
    FORCE,
    FORM,
    FORMAT,
    INCLUDE_CONFIG,
    INCLUDE_SECRETS,
    LEVEL,
    MAX_RECORD_SIZE,
    METRICS_FILE,
    MIN_EPOCH,
    OUTPUT_DIR,
    ROLLBACK,
    SERVER,
    SESSIONS,
    SKIP_VERIFY,
    TO_TIME,
    TO_ZXID,
    VALIDATION_TIMEOUT,
    VERIFY,
    ZK_VERSION,
)

BACKUP_COMMAND = ZkCommand(
    late_command("logkeep.cli.zkbackup.backup:backup"),
    """Back up one server while it runs.

    Copies the snapshots, then the logs up to the last complete record that the server has committed, and repeats until
    the newest snapshot is covered. The directory of the backup appears only when it is complete.
    """,
    own=(
        *SERVER,
        *(OUTPUT_DIR, BACKUP_ID, VERIFY, COMPRESSION, COMPRESSION_LEVEL, AUTO_REPAIR, CONCURRENT_COPIES),
        *(INCLUDE_CONFIG, INCLUDE_SECRETS, CONFIG_DIR, FORMAT, METRICS_FILE),
        *(MAX_RECORD_SIZE, COPY_BUFFER_SIZE, VALIDATION_TIMEOUT),
    ),
    exits=(0, 2, 3, 10, 20, 21, 40, 130, 143),
    failed=backup_failed,
)
RESTORE_COMMAND = ZkCommand(
    late_command("logkeep.cli.zkbackup.restore:restore"),
    """Put a backup in place of a stopped server's data.

    The server must be stopped. By default the tree is restored as it was at the end of the backup; --to-zxid and
    --to-time choose another point in time. One that cannot be proven is refused, with a list of those that can.
    """,
    own=(
        *(BACKUP_DIR, *SERVER, FORCE, DRY_RUN, SKIP_VERIFY, TO_ZXID, TO_TIME, SESSIONS, FORM),
        *(BELIEVE, ACCEPT_MISMATCH, ENSEMBLE, MIN_EPOCH, ZK_VERSION, CONTINUE, ROLLBACK),
        *(FORMAT, METRICS_FILE, VALIDATION_TIMEOUT),
    ),
    exits=(0, 2, 3, 10, 30, 31, 40, 52, 130, 143),
    failed=restore_failed,
)
VERIFY_COMMAND = ZkCommand(
    late_command("logkeep.cli.zkbackup.verify:verify"),
    """Check that a backup can be restored, and repair what can be repaired.

    Checks that every file exists, every byte is as it was written, no transaction is missing, and that the resulting
    tree is the one the server had. The verdict is stored with the backup; `zkbackup list` shows it.
    """,
    own=(BACKUP_DIR, LEVEL, FIX, FORMAT, METRICS_FILE, VALIDATION_TIMEOUT),
    exits=(0, 1, 2, 10, 40, 52, 130, 143),
)
